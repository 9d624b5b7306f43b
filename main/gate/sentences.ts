import type { Evaluation } from './evaluate.ts';
import type { FailureReason } from './measurement.ts';

/** Cosines are compared in the fourth decimal, and cut there: rounded, a refusal at 0.98996 would read 0.9900. */
function cosineText(value: number | null): string {
  return value === null ? 'not a number' : (Math.floor(value * 1e4 + 1e-6) / 1e4).toFixed(4);
}

/** Plain words for a finished comparison: what was found, and what the operator does about it. */
export function sentenceOf(found: Evaluation): string {
  const figure = found.checks.find(({ check }) => check === found.failed)?.figure ?? null;
  const [first, second, third] = found.witnesses;
  switch (found.kind) {
    case 'pass':
      return `Its vectors agree with the space's: smallest cosine ${cosineText(found.minCosine)}.`;
    case 'pass-reduced':
      return 'The only upstream of this model: there is no peer to compare it with. Width, pin, repetition and batches were checked, and it is compared with its own first vectors. Pin a second upstream to have it compared.';
    case 'vector-incompatible':
      return incompatible(found, figure, first, third);
    case 'scale-mismatch':
      return `Same directions, another length: norms differ by up to ${figure === null ? 'more than can be said' : `${(100 * figure).toFixed(1)} %`}. Switch on the engine's normalisation, or found a space that normalises.`;
    case 'batch-inconsistent':
      return `A text sent in a batch gives another vector than sent alone (cosine ${cosineText(figure)}). Update the engine, or set its batch size to 1.`;
    case 'collapsed':
      return `Different texts give one vector ("${first}" and "${second}", cosine ${cosineText(figure)}). The model or its tokeniser is broken: fetch it again or convert it anew.`;
    case 'silent-truncation':
      return 'It answers a text over its limit without having read all of it. Switch off truncation at the engine, or raise its window above the limit of the space.';
    case 'unstable':
      return found.failed === 'drift'
        ? `It no longer gives its own first vectors (smallest cosine ${cosineText(figure)}). It is parked; rows written since its last good check are in doubt. Find out what changed, and index those rows again.`
        : `The same text twice gives two vectors (cosine ${cosineText(figure)}). Update the engine or its drivers; look for several servers behind one address.`;
    default:
      return 'Not checked yet.';
  }
}

function incompatible(
  found: Evaluation,
  figure: number | null,
  first: string | undefined,
  misplaced: string | undefined,
): string {
  const remedy =
    'Serve the founding model with the same pooling, prefix and at least Q8_0 weights, or found a space of its own.';
  if (found.failed === 'usable') {
    return `It gave a vector that is zero or not finite (probe "${first}"). Update the engine or fetch the model again.`;
  }
  if (found.failed === 'centred') {
    return `Less what all texts share, its vectors point elsewhere: smallest centred cosine ${cosineText(figure)}, needed above 0.98. ${remedy}`;
  }
  if (found.failed === 'nearest') {
    return `${figure} probes lie nearer to another text's reference than to their own, "${misplaced}" first. ${remedy}`;
  }
  return `Its vectors are not the space's: smallest cosine ${cosineText(found.minCosine)} at "${found.worst?.id}". ${remedy}`;
}

export function widthSentence(width: number, expected: number): string {
  return `It gives ${width} numbers, the space has ${expected}. This is another model, or the engine cuts; serve the founding model or found a space of its own.`;
}

export function shortSentence(limitTokens: number, probe: string): string {
  return `It refuses texts that the space promises to read (probe "${probe}", limit ${limitTokens} tokens). Start the engine with a larger window (llama.cpp: -c and -ub, Ollama: num_ctx), or found a space with this limit.`;
}

export const NO_PIN_SENTENCE =
  'Two upstreams of one model do not promise the same vectors. Pin one upstream for this role.';

export function otherUpstreamSentence(): string {
  return 'Another upstream than the pinned one answered. Check the pin: it must name exactly one upstream.';
}

const FAILURES: Readonly<Record<FailureReason, string>> = {
  busy: 'The engine stayed busy while it was to be checked.',
  unreachable: 'The engine could not be reached while it was to be checked.',
  timeout: 'The engine did not answer a probe in time.',
  refused: 'The engine refused a probe that every encoder must take. Check that it serves embeddings of this model.',
  unusable: 'The engine answered a probe with something that is not a vector. Check its pooling, or update it.',
  count: 'The engine answered with another number of vectors than texts. Update it, or set its batch size to 1.',
  engine: 'The engine failed on a probe. Its own log says why.',
  moved:
    'The engine kept changing while it was checked: several processes answer at its address, it restarts, or it ends every connection after its answer.',
  unmarked: 'Nothing tells one process of this engine from another, so a verdict would hold for neither.',
};

export function failureSentence(reason: FailureReason): string {
  return `${FAILURES[reason]} It is checked again by itself.`;
}
