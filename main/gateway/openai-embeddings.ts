import { z } from 'zod';
import { SwitchyardError } from '../domain/errors.ts';
import type { Dispatcher, EmbedAnswer, EmbedWork } from '../domain/work.ts';
import { allFinite, type EncodingFormat, sendEmbeddings } from './embedding-answer.ts';
import { errorReply } from './error-reply.ts';
import { headerValue } from './header-values.ts';
import { invalidField, type JsonBody } from './json-body.ts';
import type { KeyLimits } from './ports.ts';
import { KIND_BIT } from './prescan.ts';
import {
  assertedSpace,
  type PreparedRequest,
  type PreparePorts,
  prepareRequest,
  routeHeaders,
  SwitchyardField,
} from './request-context.ts';
import type { Route, WorkCall } from './routes.ts';

export const MAX_INPUTS = 2048;

const EmbeddingRequest = z.looseObject({
  model: z.string().describe('embedding, code-embedding, or a model of one of them'),
  input: z.union([z.string().min(1), z.array(z.string().min(1)).min(1).max(MAX_INPUTS)]),
  encoding_format: z.enum(['float', 'base64']).optional(),
  dimensions: z.int().min(1).optional().describe('A width that the operator has declared; default: the full one'),
  truncate: z
    .boolean()
    .optional()
    .describe('Cut inputs that are longer than the space reads, instead of refusing them'),
  switchyard: SwitchyardField.optional(),
});
const EmbeddingResponse = z.object({
  object: z.literal('list'),
  data: z.array(
    z.object({
      object: z.literal('embedding'),
      index: z.int(),
      embedding: z.union([z.array(z.number()), z.string().describe('base64 of little-endian float32')]),
    }),
  ),
  model: z.string(),
  usage: z.object({ prompt_tokens: z.int(), total_tokens: z.int() }),
});

export interface EmbeddingPorts extends PreparePorts {
  readonly dispatcher: Dispatcher;
  readonly limits: KeyLimits;
}

export function embeddingRoutes(ports: EmbeddingPorts): Route[] {
  return [
    {
      method: 'POST',
      path: '/v1/embeddings',
      access: 'work',
      form: 'openai',
      document: {
        summary: 'Vectors for one or up to 2,048 texts, all of one vector space',
        tag: 'OpenAI',
        request: EmbeddingRequest,
        response: EmbeddingResponse,
      },
      handle: (call) => handleEmbeddings(call, ports),
    },
  ];
}

async function handleEmbeddings(call: WorkCall, ports: EmbeddingPorts): Promise<void> {
  const { body } = call;
  checkInput(body);
  const format = encodingFormat(body);
  const stated = body.integer('dimensions', 1);
  const truncate = body.boolean('truncate') ?? false;
  const prepared = prepareRequest(call, 'embed', ports);
  const asserted = assertedSpace(call, prepared.field);
  if (asserted?.width != null && stated !== null && asserted.width !== stated) {
    throw new SwitchyardError('space_mismatch');
  }
  const texts = await readInputs(body);
  const work: EmbedWork = {
    context: prepared.context,
    texts,
    dimensions: stated ?? asserted?.width ?? null,
    truncate,
    space: asserted?.id ?? null,
  };
  if (call.reply.gone) return;
  const running = ports.dispatcher.embed(work, {
    onAnswer: (answer) => {
      ports.limits.settle(call.key, answer.usage);
      if (answer.count !== texts.length || answer.vectors.length !== answer.count * answer.width) {
        errorReply(call.reply, new SwitchyardError('engine_invalid_response'), 'openai');
      } else if (!allFinite(answer.vectors)) {
        errorReply(call.reply, new SwitchyardError('engine_invalid_response'), 'openai');
      } else {
        sendEmbeddings(answer, format, call.reply, answerHeaders(answer, prepared, ports)).catch(() =>
          call.reply.cut(),
        );
      }
    },
    onFailure: (error) => errorReply(call.reply, error, 'openai', prepared.headers),
  });
  call.reply.onGone(() => running.cancel());
}

/** Kinds and counts, from the scan alone: nothing is parsed for an input that will be refused. */
function checkInput(body: JsonBody): void {
  const input = body.member('input');
  if (input?.kind === 'string') {
    if (input.valueEnd - input.valueStart === 2) throw new SwitchyardError('empty_input');
    return;
  }
  if (input?.kind !== 'array') throw invalidField('input', 'must be a string or an array of strings');
  if (input.elementCount === 0) throw new SwitchyardError('empty_input');
  if (input.elementKinds !== KIND_BIT.string) {
    throw invalidField('input', 'must hold strings only: tokens of one model mean nothing to another');
  }
  if (input.elementCount > MAX_INPUTS) throw new SwitchyardError('too_many_inputs');
}

/** @throws SwitchyardError empty_input, with the indices */
async function readInputs(body: JsonBody): Promise<string[]> {
  const single = body.member('input')?.kind === 'string' ? body.string('input') : null;
  const texts = single === null ? await body.texts('input') : [single];
  const indices = texts.flatMap((text, index) => (text === '' ? [index] : []));
  if (indices.length > 0) throw new SwitchyardError('empty_input', undefined, { extra: { param: 'input', indices } });
  return texts;
}

function encodingFormat(body: JsonBody): EncodingFormat {
  const format = body.string('encoding_format') ?? 'float';
  if (format !== 'float' && format !== 'base64') throw invalidField('encoding_format', 'must be float or base64');
  return format;
}

function answerHeaders(answer: EmbedAnswer, prepared: PreparedRequest, ports: EmbeddingPorts): string[] {
  const full = ports.catalogue.spaceWidth(answer.space);
  const space = full !== null && full !== answer.width ? `${answer.space}/${answer.width}` : answer.space;
  return [
    'content-type',
    'application/json',
    ...routeHeaders(answer.route),
    'x-switchyard-space',
    headerValue(space),
    ...prepared.headers,
  ];
}
