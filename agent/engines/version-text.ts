import { z } from 'zod';

/** What an engine calls its version, as long as it is ever shown: one that the wire refuses would end the session of the whole machine. */
export const versionText = z.string().transform((text) => text.slice(0, 128));
