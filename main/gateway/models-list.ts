import { z } from 'zod';
import { SwitchyardError } from '../domain/errors.ts';
import { ROLE_IDS } from '../domain/roles.ts';
import { jsonReply } from './error-reply.ts';
import type { ModelCatalogue } from './ports.ts';
import type { Route } from './routes.ts';

const ListedModel = z.object({
  id: z.string(),
  object: z.literal('model'),
  created: z.int(),
  owned_by: z.string(),
  switchyard: z.object({
    roles: z.array(z.enum(ROLE_IDS)),
    kinds: z.array(z.enum(['local', 'cloud'])),
    aliases: z.array(z.string()),
  }),
});
type ListedModel = z.infer<typeof ListedModel>;

/** `GET /v1/models`: role aliases first, then every concrete model. */
export function modelRoutes(catalogue: ModelCatalogue): Route[] {
  return [
    {
      method: 'GET',
      path: '/v1/models',
      access: 'key',
      form: 'openai',
      document: {
        summary: 'Roles, then every concrete model',
        tag: 'OpenAI',
        response: z.object({ object: z.literal('list'), data: z.array(ListedModel) }),
      },
      handle: (call) => jsonReply(call.reply, 200, { object: 'list', data: listModels(catalogue) }),
    },
    {
      method: 'GET',
      path: '/v1/models/:id',
      access: 'key',
      form: 'openai',
      document: { summary: 'One role or model', tag: 'OpenAI', response: ListedModel },
      handle: (call) => {
        const found = listModels(catalogue).find((model) => model.id === call.parameters.get('id'));
        if (found === undefined) {
          throw new SwitchyardError('model_not_found', 'No model of that name is served. GET /v1/models lists them.');
        }
        jsonReply(call.reply, 200, found);
      },
    },
  ];
}

function listModels(catalogue: ModelCatalogue): ListedModel[] {
  const entry = (id: string, switchyard: ListedModel['switchyard']): ListedModel => ({
    id,
    object: 'model',
    // OpenAI's clients want a time; nobody knows when a model was made, and 0 is read as "long ago".
    created: 0,
    owned_by: 'switchyard',
    switchyard,
  });
  const models = catalogue.models();
  const roles = ROLE_IDS.map((role) =>
    entry(role, {
      roles: [role],
      kinds: [...new Set(models.flatMap((model) => (model.roles.includes(role) ? model.kinds : [])))],
      aliases: [],
    }),
  );
  return [
    ...roles,
    ...models.map((model) =>
      entry(model.name, { roles: [...model.roles], kinds: [...model.kinds], aliases: [...model.aliases] }),
    ),
  ];
}
