import type { Message } from './catalogue/type.ts';

/** What can go wrong between the console and the control plane; their codes exist only here. */
export const CONSOLE_ERRORS: Readonly<Record<string, Message>> = {
  console_disconnected: {
    en: 'Switchyard does not answer. It may be restarting.',
    fr: 'Switchyard ne répond pas. Il redémarre peut-être.',
  },
};
