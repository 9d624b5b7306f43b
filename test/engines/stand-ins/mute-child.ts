import { OpenaiStandIn } from './openai.ts';
import { HashVectors } from './vectors.ts';

/**
 * A generic OpenAI server in a process of its own: it tells nothing of itself, and killing it breaks its connections as killing
 * any engine does. See `startMute`.
 */
export interface MuteOptions {
  /** 0: any. */
  readonly port: number;
  readonly pooling: 'mean' | 'last';
  readonly model: string;
}
export type FromMute = { readonly told: 'port' | 'seen'; readonly value: number };

/** The same weights, of which only the end of a text is heard. */
class LastPooled extends HashVectors {
  override encode(text: string): Promise<Float32Array> {
    return super.encode(text.slice(-12));
  }
}

let engine: OpenaiStandIn | null = null;
const tell = (message: FromMute) => process.send?.(message);

process.on('message', async (message: MuteOptions | { readonly count: string }) => {
  if ('count' in message) {
    const texts = (engine?.requests ?? []).flatMap(({ body }) => [body?.input].flat());
    tell({ told: 'seen', value: texts.filter((text) => String(text).startsWith(message.count)).length });
    return;
  }
  const { port, pooling, model } = message;
  const vectors = pooling === 'mean' ? new HashVectors() : new LastPooled();
  engine = new OpenaiStandIn({ task: 'embed', vectors, window: 256, model });
  await engine.start(port);
  tell({ told: 'port', value: engine.port });
});
process.once('disconnect', () => process.exit());
