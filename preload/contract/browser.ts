import { z } from 'zod';

/** Browser to server on the socket. Server to browser: `TopicUpdate` as JSON, or `{type: 'closing', code}`. */
export const FromBrowser = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('want'), topics: z.array(z.string().max(32)).max(32) }),
  z.strictObject({ type: z.literal('visible'), visible: z.boolean() }),
]);
export type FromBrowser = z.infer<typeof FromBrowser>;
