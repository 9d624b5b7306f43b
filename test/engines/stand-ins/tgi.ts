import { type ChatForm, event, promptTokens, recite } from './chat.ts';
import { type Reply, StandIn, type StandInOptions } from './stand-in.ts';

const failed = (message: string) => ({ error: { message, http_status_code: 422 } });

const FORM: ChatForm = {
  top: (object) => ({ object, id: '', created: 1, model: 'm', system_fingerprint: '3.3.6-native' }),
  broken: [event(failed('Request failed during generation: CUDA error'), ''), event('[DONE]', '')],
  separator: '',
};

/** TGI: chat alone, 429 when full, 422 for what is too long, and in a stream everything is 422 with `[DONE]` after it. */
export class TgiStandIn extends StandIn {
  readonly version = '3.3.6';
  ill = false;
  /** Its own name in `/info`; older releases did not give it. */
  readonly namesItself: boolean;

  constructor(options: StandInOptions & { readonly namesItself?: boolean } = {}) {
    super(options, 'org/model-on-tgi');
    this.namesItself = options.namesItself ?? true;
  }

  protected async route(reply: Reply): Promise<void> {
    const { method, path } = reply.seen;
    switch (`${method} ${path}`) {
      case 'GET /':
      case 'GET /health':
        return this.ill ? reply.json(503, { error: 'unhealthy', error_type: 'healthcheck' }) : reply.text(200, '');
      case 'GET /info':
        return reply.json(200, {
          model_id: this.model,
          model_sha: 'abc',
          model_pipeline_tag: 'text-generation',
          max_concurrent_requests: 128,
          max_best_of: 2,
          max_stop_sequences: 4,
          max_input_tokens: this.window - 1,
          max_total_tokens: this.window,
          validation_workers: 2,
          max_client_batch_size: 4,
          ...(this.namesItself ? { router: 'text-generation-router' } : {}),
          version: this.version,
        });
      case 'GET /v1/models':
        return reply.json(200, {
          object: 'list',
          data: [{ id: this.model, object: 'model', created: 0, owned_by: this.model }],
        });
      case 'GET /metrics':
        return reply.text(
          200,
          '# TYPE tgi_queue_size gauge\ntgi_queue_size 3\n# TYPE tgi_batch_current_size gauge\ntgi_batch_current_size 2\n',
        );
      case 'POST /v1/chat/completions':
        return this.#chat(reply);
      default:
        return reply.text(404, '');
    }
  }

  async #chat(reply: Reply): Promise<void> {
    const trouble = this.meets();
    if (trouble?.kind === 'busy') return reply.json(429, { error: 'Model is overloaded', error_type: 'overloaded' });
    if (trouble?.kind === 'error-in-200') return reply.json(200, failed('broke'));
    const [input, output] = [await promptTokens(this, reply.body), Number(reply.body.max_tokens ?? 1)];
    if (input + output > this.window) {
      const message = `Input validation error: \`inputs\` tokens + \`max_new_tokens\` must be <= ${this.window}. Given: ${input} \`inputs\` tokens and ${output} \`max_new_tokens\``;
      if (reply.body.stream !== true) return reply.json(422, { error: message, error_type: 'validation' });
      reply.events();
      reply.write(event(failed(message), ''));
      reply.write(event('[DONE]', ''));
      return reply.end();
    }
    await recite(this, reply, FORM, trouble);
  }
}
