import { z } from 'zod';
import { SwitchyardError } from '../domain/errors.ts';
import { errorReply, jsonReply } from './error-reply.ts';
import type { GatewayPorts } from './ports.ts';
import type { Route } from './routes.ts';

const Health = z.object({
  status: z.enum(['ok', 'attention']),
  items: z.array(
    z.object({
      code: z.string(),
      severity: z.enum(['info', 'warn', 'error']),
      sentence: z.string(),
      /** Somebody must act; the rest heals by itself or can wait. */
      needsPerson: z.boolean(),
    }),
  ),
});

/** `/healthz` answers while the process lives, `/readyz` says whether work is taken, `/metrics` is for Prometheus. */
export function healthRoutes(ports: Pick<GatewayPorts, 'health' | 'metrics'>, isDraining: () => boolean): Route[] {
  return [
    {
      method: 'GET',
      path: '/healthz',
      access: 'public',
      form: 'openai',
      document: { summary: 'Alive, and what is wrong', tag: 'Health', response: Health },
      handle: (call) => {
        const items = ports.health.items();
        jsonReply(call.reply, 200, {
          // As Overview, the bar above every page and the tray count it.
          status: items.some((item) => item.needsPerson) ? 'attention' : 'ok',
          items,
        });
      },
    },
    {
      method: 'GET',
      path: '/readyz',
      access: 'public',
      form: 'openai',
      document: { summary: 'Ready to take work', tag: 'Health', response: z.object({ ready: z.literal(true) }) },
      handle: (call) => {
        if (isDraining()) errorReply(call.reply, new SwitchyardError('shutting_down'), 'openai');
        else if (!ports.health.ready()) errorReply(call.reply, new SwitchyardError('not_ready'), 'openai');
        else jsonReply(call.reply, 200, { ready: true });
      },
    },
    {
      method: 'GET',
      path: '/metrics',
      access: 'private',
      form: 'openai',
      document: { summary: 'Prometheus text', tag: 'Health', responseType: 'text/plain' },
      handle: async (call) => {
        const { contentType, text } = await ports.metrics();
        const body = Buffer.from(text);
        call.reply.head(200, ['content-type', contentType, 'content-length', String(body.length)]);
        call.reply.end(body);
      },
    },
  ];
}
