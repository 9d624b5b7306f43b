import { hash } from 'node:crypto';
import { z } from 'zod';
import { SwitchyardError } from '../domain/errors.ts';
import type { ProjectId } from '../domain/ids.ts';
import type { ChatWork, Dispatcher } from '../domain/work.ts';
import { ChatAnswer } from './chat-answer.ts';
import { checkChatFields } from './chat-fields.ts';
import { inspectMedia } from './chat-media.ts';
import { invalidField, type JsonBody } from './json-body.ts';
import type { KeyLimits } from './ports.ts';
import { KIND_BIT } from './prescan.ts';
import { type PreparedRequest, type PreparePorts, prepareRequest, SwitchyardField } from './request-context.ts';
import type { Route, WorkCall } from './routes.ts';

const UNSTATED_OUTPUT_TOKENS = 1024;
/** Messages looked at for the first one of a user; a conversation that begins with more has no affinity. */
const AFFINITY_MESSAGES = 8;

/** For /openapi.json: members that the endpoint itself reads. All others reach the engine as they are. */
const ChatRequest = z.looseObject({
  model: z.string().describe('A role, a model, or either with :local, :backup, :aggregate or :cloud behind it'),
  messages: z.array(z.looseObject({ role: z.string() })).min(1),
  stream: z.boolean().optional(),
  stream_options: z.looseObject({ include_usage: z.boolean().optional() }).optional(),
  max_tokens: z.int().min(1).optional(),
  max_completion_tokens: z.int().min(1).optional(),
  switchyard: SwitchyardField.optional(),
});
const CompletionRequest = ChatRequest.omit({ messages: true }).extend({
  prompt: z.union([z.string(), z.array(z.union([z.string(), z.int(), z.array(z.int())]))]),
});

export interface ChatPorts extends PreparePorts {
  readonly dispatcher: Dispatcher;
  readonly limits: KeyLimits;
}

/** `POST /v1/chat/completions` and `POST /v1/completions`: the engine's own bytes, streamed or not. */
export function chatRoutes(ports: ChatPorts): Route[] {
  const common = { method: 'POST', access: 'work', form: 'openai' } as const;
  return [
    {
      ...common,
      path: '/v1/chat/completions',
      document: {
        summary: 'Chat, streamed or whole',
        tag: 'OpenAI',
        request: ChatRequest,
        response: z.looseObject({}),
      },
      handle: (call: WorkCall) => handleChat(call, ports),
    },
    {
      ...common,
      path: '/v1/completions',
      document: {
        summary: 'Completion of a text, streamed or whole',
        tag: 'OpenAI',
        request: CompletionRequest,
        response: z.looseObject({}),
      },
      handle: (call: WorkCall) => handleCompletion(call, ports),
    },
  ];
}

function handleChat(call: WorkCall, ports: ChatPorts): void {
  const { body } = call;
  const messages = body.member('messages');
  if (messages?.kind !== 'array') throw invalidField('messages', 'must be an array of messages');
  if (messages.elementCount === 0) throw new SwitchyardError('empty_input', 'messages is empty. Send at least one.');
  if (messages.elementKinds !== KIND_BIT.object) throw invalidField('messages', 'must hold objects only');
  const prepared = prepareRequest(call, 'chat', ports);
  const media = inspectMedia(body);
  start(call, ports, media.remote ? onlyCloud(prepared) : prepared, {
    path: '/v1/chat/completions',
    promptTokens: Math.ceil((body.utf8Bytes('messages') - media.payloadBytes) / 3) + media.tokens,
    conversation: conversationOf(body, prepared.context.project),
  });
}

function handleCompletion(call: WorkCall, ports: ChatPorts): void {
  const { body } = call;
  const prompt = body.member('prompt');
  if (prompt?.kind !== 'string' && prompt?.kind !== 'array') {
    throw invalidField('prompt', 'must be a string or an array');
  }
  const empty = prompt.kind === 'array' ? prompt.elementCount === 0 : prompt.valueEnd - prompt.valueStart === 2;
  if (empty) throw new SwitchyardError('empty_input');
  start(call, ports, prepareRequest(call, 'chat', ports), {
    path: '/v1/completions',
    promptTokens: Math.ceil(body.utf8Bytes('prompt') / 3),
    conversation: null,
  });
}

function start(
  call: WorkCall,
  ports: ChatPorts,
  prepared: PreparedRequest,
  prompt: Pick<ChatWork, 'path' | 'promptTokens' | 'conversation'>,
): void {
  const { body } = call;
  checkChatFields(body);
  const stream = body.boolean('stream') ?? false;
  const work: ChatWork = {
    ...prompt,
    context: prepared.context,
    stream,
    wantsUsage: stream && wantsUsage(body),
    body: body.without('switchyard'),
    maxOutputTokens:
      body.integer('max_completion_tokens', 1) ?? body.integer('max_tokens', 1) ?? UNSTATED_OUTPUT_TOKENS,
  };
  if (call.reply.gone) return;
  const answer = new ChatAnswer(call.reply, stream, prepared.headers, (usage) =>
    ports.limits.settle(
      call.key,
      usage ?? { promptTokens: prompt.promptTokens, completionTokens: 0, exact: false, costUsd: null },
    ),
  );
  answer.attach(ports.dispatcher.chat(work, answer));
}

function wantsUsage(body: JsonBody): boolean {
  if (!body.has('stream_options')) return false;
  const options = body.value('stream_options');
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw invalidField('stream_options', 'must be an object');
  }
  return 'include_usage' in options && options.include_usage === true;
}

/** Media addresses leave the choice to the cloud, as far as the policy admits it. */
function onlyCloud(prepared: PreparedRequest): PreparedRequest {
  const { context, role } = prepared;
  if (context.policy === 'local' || !role.hasCloud) throw new SwitchyardError('remote_media');
  return { ...prepared, context: { ...context, policy: 'cloud' } };
}

/**
 * What a prefix cache sees of a conversation: project and everything up to the first message of a user. Clients send a
 * conversation's beginning again byte for byte, so its bytes are hashed as they are.
 */
function conversationOf(body: JsonBody, project: ProjectId): string | null {
  for (let index = 0; index < AFFINITY_MESSAGES; index += 1) {
    const message = body.element('messages', index);
    if (message === null) return null;
    if (roleOf(message) !== 'user') continue;
    const start = body.member('messages')?.valueStart ?? 0;
    const end = message.byteOffset - body.bytes.byteOffset + message.length;
    return hash('sha256', Buffer.concat([Buffer.from(`${project}\n`), body.bytes.subarray(start, end)]), 'hex');
  }
  return null;
}

function roleOf(message: Buffer): string {
  // Enough for a role that comes first, as all clients write it; else the whole message is read.
  const first = /^\{\s*"role"\s*:\s*"([a-z]{1,16})"/.exec(message.toString('latin1', 0, 64));
  if (first?.[1] !== undefined) return first[1];
  const parsed: unknown = JSON.parse(message.toString('utf8'));
  return typeof parsed === 'object' && parsed !== null && 'role' in parsed ? String(parsed.role) : '';
}
