import { z } from 'zod';
import {
  type CatalogueEndpoint,
  type CatalogueModel,
  MAX_CATALOGUE_ENDPOINTS,
  MAX_CATALOGUE_MODELS,
} from '../wire/cloud.ts';
import type { CloudHttp } from './http.ts';
import { upstreamName } from './upstreams.ts';

const TIMEOUT_MS = 20_000;
const MAX_BYTES = 64 * 1024 * 1024;
const PAGE = 1000;

const price = z.coerce.number().min(0).max(1e6).nullable().catch(null);
const ModelEntry = z.object({
  id: z.string().max(160),
  context_length: z.number().int().min(0).max(1e9).nullable().catch(null),
  architecture: z.object({ output_modalities: z.array(z.string()) }),
  pricing: z.object({ prompt: price, completion: price, request: price.optional() }),
});
const Page = z.object({ data: z.array(z.unknown()), total_count: z.number().optional() });
const EndpointEntry = z.object({
  tag: z.string().max(160),
  provider_name: z.string().max(160),
  quantization: z.string().max(32).nullable().catch(null),
  context_length: z.number().int().min(0).max(1e9).nullable().catch(null),
  pricing: z.object({ prompt: price, completion: price }),
  status: z.number().catch(0),
});
const Endpoints = z.object({ data: z.object({ endpoints: z.array(z.unknown()) }) });

export interface OfferedModel extends CatalogueModel {
  readonly requestUsd: number | null;
}

/** The live catalogue. Public routes: no key is sent. Entries that cannot be read are left out. */
export class CloudCatalogue {
  readonly #http: CloudHttp;

  constructor(http: CloudHttp) {
    this.#http = http;
  }

  /** Null when it could not be read. */
  async models(baseUrl: string, signal: AbortSignal): Promise<readonly OfferedModel[] | null> {
    const models: OfferedModel[] = [];
    for (let page = 0; page * PAGE < MAX_CATALOGUE_MODELS; page++) {
      const answer = await this.#get(
        baseUrl,
        `/models?output_modalities=all&limit=${PAGE}&offset=${page * PAGE}`,
        signal,
      );
      const parsed = Page.safeParse(answer);
      if (!parsed.success) return page === 0 ? null : models;
      for (const entry of parsed.data.data) {
        const model = offered(entry);
        if (model !== null) models.push(model);
      }
      if (parsed.data.data.length < PAGE) break;
    }
    // A page may be longer than was asked for.
    return models.slice(0, MAX_CATALOGUE_MODELS);
  }

  /** Where a model is served; null when it could not be read, which also says "not offered". */
  async endpoints(baseUrl: string, model: string, signal: AbortSignal): Promise<readonly CatalogueEndpoint[] | null> {
    const path = model.split('/').map(encodeURIComponent).join('/');
    const parsed = Endpoints.safeParse(await this.#get(baseUrl, `/models/${path}/endpoints`, signal));
    if (!parsed.success) return null;
    return parsed.data.data.endpoints.slice(0, MAX_CATALOGUE_ENDPOINTS).flatMap((raw) => {
      const entry = EndpointEntry.safeParse(raw);
      const name = entry.success ? upstreamName(entry.data.provider_name) : null;
      if (!entry.success || name === null) return [];
      const { tag, quantization, context_length: contextTokens, pricing, status } = entry.data;
      return [
        {
          tag,
          upstream: name,
          quantization,
          contextTokens,
          promptUsd: pricing.prompt,
          completionUsd: pricing.completion,
          healthy: status >= 0,
        },
      ];
    });
  }

  async #get(baseUrl: string, path: string, signal: AbortSignal): Promise<unknown> {
    try {
      const request = { baseUrl, path, authorization: null, body: null, firstByteMs: TIMEOUT_MS, signal };
      const { status, json } = await this.#http.json(request, MAX_BYTES);
      return status === 200 ? json : null;
    } catch {
      return null;
    }
  }
}

function offered(raw: unknown): OfferedModel | null {
  const entry = ModelEntry.safeParse(raw);
  if (!entry.success) return null;
  const { id, context_length: contextTokens, architecture, pricing } = entry.data;
  const outputs = architecture.output_modalities;
  const kind = outputs.includes('embeddings')
    ? 'embed'
    : outputs.includes('rerank')
      ? 'rerank'
      : outputs.includes('text')
        ? 'chat'
        : null;
  if (kind === null) return null;
  return {
    model: id,
    kind,
    contextTokens,
    promptUsd: pricing.prompt,
    completionUsd: pricing.completion,
    requestUsd: pricing.request ?? null,
  };
}

/** Costs nothing, so that free limits hold and credit does not. A reranker's token price of 0 says nothing: searches cost. */
export function isFree(model: OfferedModel): boolean {
  if (model.model.endsWith(':free')) return true;
  return model.kind !== 'rerank' && model.promptUsd === 0 && model.completionUsd === 0;
}

/** Up to five offered ids of the same kind, the most alike first: by shared letter pairs (Dice), same author counting extra. */
export function nearest(
  wanted: string,
  kind: CatalogueModel['kind'],
  models: readonly CatalogueModel[],
): readonly string[] {
  const pairs = letterPairs(wanted);
  const author = wanted.split('/')[0];
  return models
    .filter((model) => model.kind === kind)
    .map(({ model }) => ({
      model,
      likeness: dice(pairs, letterPairs(model)) + (model.split('/')[0] === author ? 0.1 : 0),
    }))
    .filter(({ likeness }) => likeness > 0.2)
    .sort((a, b) => b.likeness - a.likeness || (a.model < b.model ? -1 : 1))
    .slice(0, 5)
    .map(({ model }) => model);
}

function letterPairs(text: string): ReadonlyMap<string, number> {
  const pairs = new Map<string, number>();
  const lower = text.toLowerCase();
  for (let at = 0; at + 2 <= lower.length; at++) {
    const pair = lower.slice(at, at + 2);
    pairs.set(pair, (pairs.get(pair) ?? 0) + 1);
  }
  return pairs;
}

function dice(a: ReadonlyMap<string, number>, b: ReadonlyMap<string, number>): number {
  let shared = 0;
  let total = 0;
  for (const [pair, count] of a) {
    shared += Math.min(count, b.get(pair) ?? 0);
    total += count;
  }
  for (const count of b.values()) total += count;
  return total === 0 ? 0 : (2 * shared) / total;
}
