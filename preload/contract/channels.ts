import type { Says } from './common.ts';

/** The only place that names an IPC channel. Everything else travels inside these as a name of the contract. */
export const CHANNELS = {
  /** invoke(name, input) -> Answer */
  call: 'switchyard:call',
  /** invoke(Uint8Array, KeyPush) -> Answer; the bytes are zeroed on both sides. */
  cloudKey: 'switchyard:cloud-key',
  /** send(topics): the topics this window wants, replacing what it wanted before. */
  want: 'switchyard:want',
  /** main -> window: TopicUpdate */
  update: 'switchyard:update',
  /** main -> window: a page to show, with an optional target. */
  show: 'switchyard:show',
} as const;

/** How every call ends on the wire: a value, or a code with our own sentence. Nothing foreign passes. */
export type Answer<Value = unknown> =
  | { readonly ok: true; readonly value: Value }
  | {
      readonly ok: false;
      readonly code: string;
      readonly detail: string | null;
      /** `detail` by code and figures, where it has one. */
      readonly says?: Says;
    };
