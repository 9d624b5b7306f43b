import { createServer } from 'node:http';
import { WebSocket } from 'ws';
import { readKeyBody } from '../../main/cloud/key-body.ts';
import { KeyPush } from '../../main/cloud/key-push.ts';
import type { NodeId } from '../../main/domain/ids.ts';
import { defaultRoleSettings, ROLE_IDS, type RoleId, type RoleSettings } from '../../main/domain/roles.ts';

/** The key's way through a control plane, as a process of its own: in by HTTP, out by a TLS WebSocket. */
const [agentUrl = ''] = process.argv.slice(2);
const ws = new WebSocket(agentUrl, { rejectUnauthorized: false, perMessageDeflate: false });
const node = 'agent' as NodeId;
const facts: unknown[] = [];
const push = new KeyPush({
  clock: { nowMs: () => performance.now(), wallMs: () => Date.now(), after: () => () => undefined },
  agents: {
    ready: () => [{ node, name: 'agent' }],
    name: () => 'agent',
    send: () => true,
    sendBinary: (_, frame, sent) => {
      ws.send(frame, sent);
      return true;
    },
  },
  store: { load: () => null, save: (saved) => facts.push(saved) },
  events: { record: () => undefined },
  roles: () =>
    Object.fromEntries(ROLE_IDS.map((role) => [role, defaultRoleSettings(role)])) as Record<RoleId, RoleSettings>,
  baseUrl: () => null,
  onChange: () => undefined,
  onKeyApplied: () => undefined,
});

const server = createServer(async (request, response) => {
  try {
    if (request.method === 'PUT') await push.push(await readKeyBody(request));
    else for await (const chunk of request) if (chunk.length === 0) break;
    response.end('{"ok":true}');
  } catch (error) {
    response.statusCode = 400;
    response.end(JSON.stringify({ message: error instanceof Error ? error.message : '' }));
  }
});
ws.on('open', () => {
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    process.send?.({ port: typeof address === 'object' ? address?.port : 0 });
  });
});
