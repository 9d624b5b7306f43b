import { type PacedCounts, type PacedEngine, type PacedOptions, startPaced } from './paced.ts';

/** A paced engine as a process of its own, driven over the channel of its parent: see `startPacedProcess`. */
export type ToChild =
  | { readonly ask: 'start'; readonly options: PacedOptions }
  | { readonly ask: 'rate'; readonly rate: number | null }
  | { readonly ask: 'counts' }
  | { readonly ask: 'forget' };
export type FromChild =
  | { readonly told: 'started'; readonly port: number }
  | { readonly told: 'counts'; readonly counts: PacedCounts }
  | { readonly told: 'done' };

let engine: PacedEngine | null = null;

async function answer(message: ToChild): Promise<FromChild> {
  switch (message.ask) {
    case 'start':
      engine = await startPaced(message.options);
      return { told: 'started', port: engine.port };
    case 'rate':
      engine?.setRate(message.rate ?? Number.POSITIVE_INFINITY); // JSON has no infinity
      return { told: 'done' };
    case 'counts':
      return {
        told: 'counts',
        counts: engine?.counts() ?? {
          encodes: {},
          chats: { begun: 0, completed: 0, left: 0, most: 0, tokens: 0 },
          bodies: [],
        },
      };
    case 'forget':
      engine?.forget();
      return { told: 'done' };
  }
}

process.on('message', (message: ToChild) => {
  void answer(message).then((told) => process.send?.(told));
});
process.on('disconnect', () => process.exit(0));
