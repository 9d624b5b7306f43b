import type { StandInModel } from './models.ts';

const CREATED = 1_790_000_000;

/** `Model` of `GET /models`. */
export function modelObject(model: StandInModel): Readonly<Record<string, unknown>> {
  const output = model.kind === 'chat' ? 'text' : model.kind;
  return {
    id: model.id,
    canonical_slug: model.id,
    name: model.id,
    created: CREATED,
    description: 'A model of the stand-in.',
    context_length: model.contextTokens,
    architecture: {
      modality: `text->${output}`,
      input_modalities: ['text'],
      output_modalities: [output],
      tokenizer: 'Other',
      instruct_type: null,
    },
    pricing: { prompt: String(model.promptUsd), completion: String(model.completionUsd), request: '0' },
    top_provider: { context_length: model.contextTokens, max_completion_tokens: null, is_moderated: false },
    per_request_limits: null,
    supported_parameters: model.kind === 'chat' ? ['max_tokens', 'temperature', 'tools', 'stop'] : [],
    default_parameters: null,
    supported_voices: null,
    links: { details: `/api/v1/models/${model.id}/endpoints` },
  };
}

/** `GET /models/{author}/{slug}/endpoints`. */
export function endpointsObject(model: StandInModel, down: ReadonlySet<string>): Readonly<Record<string, unknown>> {
  const { id, name, created, description, architecture } = modelObject(model);
  return {
    id,
    name,
    created,
    description,
    architecture,
    endpoints: model.upstreams.map((upstream) => ({
      name: `${upstream.name} | ${model.id}`,
      model_id: model.id,
      model_name: model.id,
      provider_name: upstream.name,
      tag: upstream.tag,
      quantization: upstream.quantization,
      context_length: model.contextTokens,
      max_completion_tokens: null,
      max_prompt_tokens: null,
      pricing: {
        prompt: String(upstream.price?.[0] ?? model.promptUsd),
        completion: String(upstream.price?.[1] ?? model.completionUsd),
      },
      supported_parameters: model.kind === 'chat' ? ['max_tokens', 'temperature'] : [],
      supports_implicit_caching: false,
      supports_tool_choice: { auto: true, none: true, required: true, function: true },
      status: down.has(upstream.tag) ? -5 : 0,
      uptime_last_5m: 100,
      uptime_last_30m: 100,
      uptime_last_1d: 100,
      latency_last_30m: null,
      throughput_last_30m: null,
    })),
  };
}

/** Models of a kind, as `output_modalities` asks for; the API's default is text. */
export function modelsOf(models: readonly StandInModel[], modalities: string | null): readonly StandInModel[] {
  if (modalities === 'all') return models;
  const wanted = (modalities ?? 'text').split(',');
  return models.filter((model) => wanted.includes(model.kind === 'chat' ? 'text' : model.kind));
}
