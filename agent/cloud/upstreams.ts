/**
 * Upstreams that go on (and bill in full) when the connection of a stream closes; from OpenRouter's streaming guide. The others,
 * and those nobody knows, are aborted: that costs nothing where it does not help.
 */
const GO_ON: ReadonlySet<string> = new Set(
  [
    'AWS Bedrock',
    'Amazon Bedrock',
    'Groq',
    'Modal',
    'Google',
    'Google Vertex',
    'Google AI Studio',
    'Minimax',
    'HuggingFace',
    'Replicate',
    'Perplexity',
    'Mistral',
    'AI21',
    'Featherless',
    'Lynn',
    'Lambda',
    'Reflection',
    'SambaNova',
    'Inflection',
    'ZeroOneAI',
    'AionLabs',
    'Alibaba',
    'Nebius',
    'Kluster',
    'Targon',
    'InferenceNet',
  ].map(plain),
);

/** True when closing the connection of a stream does not end the upstream's work. `name`: as answers say it, or a slug. */
export function goesOnAfterAbort(name: string): boolean {
  return GO_ON.has(plain(base(name)));
}

/**
 * Whether the upstream that answered is one of the pinned ones. `names` maps endpoint tags to the names answers use; without
 * it slug and name are compared by their letters.
 */
export function isPinned(answered: string, pinned: readonly string[], names: ReadonlyMap<string, string>): boolean {
  return pinned.some((pin) => {
    if (plain(base(pin)) === plain(answered)) return true;
    for (const [tag, name] of names)
      if ((tag === pin || base(tag) === pin) && plain(name) === plain(answered)) return true;
    return false;
  });
}

/** A foreign name that may be shown: bounded, of a narrow alphabet. */
export function upstreamName(value: unknown): string | null {
  return typeof value === 'string' && /^[\w .&()/:-]{1,64}$/.test(value) ? value : null;
}

/** `deepinfra/turbo` is an endpoint of `deepinfra`. */
function base(slug: string): string {
  return slug.split('/')[0] ?? slug;
}

function plain(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '');
}
