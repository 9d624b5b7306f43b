import { z } from 'zod';
import { jsonReply } from './error-reply.ts';
import type { Route } from './routes.ts';

/** The name that a generated client gives an operation: `postV1Embeddings`. */
function operationId(route: Route): string {
  const words = route.path.split(/[^A-Za-z0-9]+/).filter((word) => word !== '');
  if (route.path.endsWith('/')) words.push('index');
  return route.method.toLowerCase() + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
}

const jsonSchema = (schema: z.ZodType, io: 'input' | 'output'): unknown => {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' });
  return rest;
};

const ErrorAnswer = {
  description: 'What went wrong; docs/errors.md lists every code',
  content: {
    'application/json': {
      schema: {
        type: 'object',
        properties: {
          error: {
            type: 'object',
            properties: { message: { type: 'string' }, type: { type: 'string' }, code: { type: 'string' } },
            required: ['message', 'type', 'code'],
          },
        },
      },
    },
  },
};

/** OpenAPI 3.1 of a route table: the same schemas that requests are parsed with. */
export function openApiDocument(routes: readonly Route[], version: string): Record<string, unknown> {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    const path = route.path.replace(/:([a-zA-Z]+)/g, '{$1}');
    const names = [...route.path.matchAll(/:([a-zA-Z]+)/g)].map((match) => match[1]);
    paths[path] ??= {};
    paths[path][route.method.toLowerCase()] = {
      operationId: operationId(route),
      summary: route.document.summary,
      tags: [route.document.tag],
      security: securityOf(route),
      ...(names.length === 0
        ? {}
        : { parameters: names.map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } })) }),
      ...requestOf(route),
      responses: { 200: answerOf(route), default: ErrorAnswer },
    };
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Switchyard', version, description: 'One local address in front of your machines and the cloud.' },
    paths,
    components: {
      securitySchemes: {
        apiKey: { type: 'http', scheme: 'bearer', description: 'An API key of a project' },
        admin: { type: 'http', scheme: 'bearer', description: 'The admin token' },
      },
    },
  };
}

function securityOf(route: Route): readonly Record<string, readonly string[]>[] {
  if (route.access === 'work' || route.access === 'key') return [{ apiKey: [] }];
  return route.access === 'admin' ? [{ admin: [] }] : [];
}

function requestOf(route: Route): Record<string, unknown> {
  const { request, requestType } = route.document;
  if (requestType !== undefined) {
    return {
      requestBody: { required: true, content: { [requestType]: { schema: { type: 'string', format: 'binary' } } } },
    };
  }
  if (request === undefined || route.method === 'GET' || route.method === 'DELETE') return {};
  return { requestBody: { content: { 'application/json': { schema: jsonSchema(request, 'input') } } } };
}

function answerOf(route: Route): Record<string, unknown> {
  const { response, responseType } = route.document;
  const schema = response === undefined ? {} : { schema: jsonSchema(response, 'output') };
  return { description: 'Done', content: { [responseType ?? 'application/json']: schema } };
}

/** `GET /openapi.json`: made at the first request, since few start with it. */
export function openApiRoute(table: () => readonly Route[], version: string): Route {
  let document: Record<string, unknown> | null = null;
  return {
    method: 'GET',
    path: '/openapi.json',
    access: 'public',
    form: 'openai',
    document: { summary: 'This description', tag: 'Health' },
    handle: (call) => {
      document ??= openApiDocument(table(), version);
      jsonReply(call.reply, 200, document);
    },
  };
}
