import { invalidField, type JsonBody } from './json-body.ts';
import type { JsonKind } from './json-bytes.ts';
import { KIND_BIT } from './prescan.ts';

interface FieldForm {
  readonly kinds: readonly JsonKind[];
  /** Kinds that its elements may have when it is an array; absent: any. */
  readonly elements?: readonly JsonKind[];
  readonly sentence: string;
}

const NUMBER: FieldForm = { kinds: ['number'], sentence: 'must be a number' };
const BOOLEAN: FieldForm = { kinds: ['boolean'], sentence: 'must be true or false' };
const OBJECT: FieldForm = { kinds: ['object'], sentence: 'must be an object' };
const OBJECTS: FieldForm = { kinds: ['array'], elements: ['object'], sentence: 'must be an array of objects' };

/** Members that engines read, by the kind of JSON that each takes. What is not named here reaches the engine unread. */
const FIELDS: readonly (readonly [string, FieldForm])[] = [
  ['tools', OBJECTS],
  ['functions', OBJECTS],
  ['tool_choice', { kinds: ['string', 'object'], sentence: 'must be a string or an object' }],
  ['parallel_tool_calls', BOOLEAN],
  ['response_format', OBJECT],
  ['logit_bias', { kinds: ['object', 'array'], sentence: 'must be an object' }],
  ['stop', { kinds: ['string', 'array'], elements: ['string'], sentence: 'must be a string or an array of strings' }],
  ['logprobs', { kinds: ['boolean', 'number'], sentence: 'must be true, false or a number' }],
  ['top_logprobs', NUMBER],
  ['temperature', NUMBER],
  ['top_p', NUMBER],
  ['top_k', NUMBER],
  ['min_p', NUMBER],
  ['frequency_penalty', NUMBER],
  ['presence_penalty', NUMBER],
  ['repetition_penalty', NUMBER],
  ['seed', NUMBER],
  ['n', NUMBER],
];

/**
 * Engines word a member of the wrong kind in many ways, some as a failure of their own, which would count against them. So the
 * kinds are looked at here, where the scan has found them already. `null` is the same as absent.
 * @throws SwitchyardError invalid_request naming the member
 */
export function checkChatFields(body: JsonBody): void {
  for (const [name, { kinds, elements, sentence }] of FIELDS) {
    const member = body.member(name);
    if (member === null || member.kind === 'null') continue;
    if (!kinds.includes(member.kind)) throw invalidField(name, sentence);
    if (elements === undefined || member.kind !== 'array') continue;
    const allowed = elements.reduce((bits, kind) => bits | KIND_BIT[kind], 0);
    if ((member.elementKinds & ~allowed) !== 0) throw invalidField(name, sentence);
  }
}
