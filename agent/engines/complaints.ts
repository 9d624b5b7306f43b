import type { EngineKind } from './adapter.ts';

/**
 * How engines word that they could not read a request, in answers that claim a failure of their own (5xx). Each form was met
 * on a running engine or stands in its source. Forms are matched against the beginning of what it says; nothing of it is kept.
 */
const COMPLAINTS: Partial<Readonly<Record<EngineKind, readonly RegExp[]>>> = {
  // b11669: a chat's members are parsed where every exception becomes a 500.
  'llama.cpp': [
    /^Failed to parse (?:tools|messages|tool call|tool_choice)/,
    /^Unknown reasoning format: /,
    /^(?:image|audio|video) input is not supported/,
    /^\s*-*\s*While executing /, // the model's chat template refuses these messages
    /^Jinja Exception: /,
  ],
  ollama: [
    /^invalid format: /,
    /^invalid JSON schema in format/,
    /^invalid image input/,
    /^image: unknown format/,
    /^Failed to load image or audio file/,
    /^template: :\d+:\d+: executing /,
  ],
  lmstudio: [/^Error rendering prompt with jinja template/],
};

/** True when the words of a 5xx say that the request is what was wrong. */
export function isComplaint(kind: EngineKind, message: string): boolean {
  return COMPLAINTS[kind]?.some((form) => form.test(message)) ?? false;
}
