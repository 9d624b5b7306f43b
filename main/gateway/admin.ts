import type { z } from 'zod';
import {
  BROWSER,
  CloudView,
  isOperationName,
  KeyPush,
  OPERATIONS,
  type OperationName,
} from '../../preload/contract.ts';
import { SwitchyardError } from '../domain/errors.ts';
import type { Clock } from '../domain/time.ts';
import { type AdminInput, adminInput, parseInput, readObject } from './admin-input.ts';
import { ADMIN_TABLE } from './admin-table.ts';
import { BODY_LIMITS, checkBodyHeaders } from './body.ts';
import { readCloudKey } from './cloud-key.ts';
import { jsonReply } from './error-reply.ts';
import type { Operations } from './ports.ts';
import type { Call, Route } from './routes.ts';

export interface AdminPorts {
  readonly operations: Operations;
  readonly clock: Clock;
}

/** Everything an operator can do, over HTTP: the table's routes, every operation by its name, and the cloud key as bytes. */
export function adminRoutes(ports: AdminPorts, eventStream: (call: Call) => void): Route[] {
  const routes: Route[] = ADMIN_TABLE.map((entry) => {
    const operation = OPERATIONS[entry.operation];
    return {
      method: entry.method,
      path: entry.path,
      access: 'admin',
      form: 'openai',
      document: {
        summary: operation.summary,
        tag: 'Administration',
        request: operation.input,
        response: operation.output,
      },
      handle: async (call: Call) => {
        const streams = entry.operation === 'events.list' && wantsEventStream(call);
        if (streams) eventStream(call);
        else await run(entry.operation, await adminInput(entry, call, ports.clock), call, ports);
      },
    };
  });
  return [
    ...routes,
    {
      method: 'POST',
      path: `${BROWSER.call}/:operation`,
      access: 'admin',
      form: 'openai',
      document: { summary: 'Any operation of the console by its name', tag: 'Administration' },
      handle: async (call) => {
        const name = call.parameters.get('operation') ?? '';
        if (!isOperationName(name)) throw new SwitchyardError('not_found');
        await run(name, { members: await readObject(call, ports.clock), fromText: false }, call, ports);
      },
    },
    {
      method: 'PUT',
      path: BROWSER.cloudKey,
      access: 'admin',
      form: 'openai',
      document: {
        summary: 'Push the OpenRouter key as bytes; nothing can read it back',
        tag: 'Administration',
        requestType: 'application/octet-stream',
        response: CloudView,
      },
      handle: (call) => pushKey(call, ports),
    },
  ];
}

async function run(name: OperationName, input: AdminInput, call: Call, ports: AdminPorts): Promise<void> {
  const { input: inputSchema, output: outputSchema }: { input: z.ZodType; output: z.ZodType } = OPERATIONS[name];
  const parsed = parseInput(inputSchema, input);
  const result = outputSchema.safeParse(await ports.operations.call(name, parsed));
  // What an operation returns beyond its schema, or against it, must not leave.
  if (!result.success) throw new SwitchyardError('internal_error');
  jsonReply(call.reply, 200, result.data, ['cache-control', 'no-store']);
}

async function pushKey(call: Call, ports: AdminPorts): Promise<void> {
  const type = call.request.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  if (type !== 'application/octet-stream') throw new SwitchyardError('invalid_cloud_key');
  const nodes = call.query.get('nodes');
  const options = KeyPush.safeParse({
    ...(nodes === null ? {} : { nodeIds: nodes.split(',').filter((id) => id !== '') }),
    ...(call.query.get('remember') === null
      ? {}
      : { remember: ['1', 'true'].includes(call.query.get('remember') ?? '') }),
  });
  if (!options.success) throw new SwitchyardError('invalid_request', 'nodes has a value that is not taken.');
  checkBodyHeaders(call.request, BODY_LIMITS);
  call.continueBody();
  const key = await readCloudKey(call.request, ports.clock);
  const result = CloudView.safeParse(await ports.operations.pushCloudKey(key, options.data));
  if (!result.success) throw new SwitchyardError('internal_error');
  jsonReply(call.reply, 200, result.data, ['cache-control', 'no-store']);
}

function wantsEventStream(call: Call): boolean {
  return (call.request.headers.accept ?? '').split(',').some((type) => type.trim().startsWith('text/event-stream'));
}
