import type { IncomingMessage } from 'node:http';
import type { z } from 'zod';
import type { RequestId } from '../domain/ids.ts';
import type { ErrorForm } from './errors.ts';
import type { Reply } from './http-reply.ts';
import type { JsonBody } from './json-body.ts';
import type { ApiKey } from './ports.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** One request that has passed the guard and its route's access rule. */
export interface Call {
  readonly id: RequestId;
  readonly request: IncomingMessage;
  /** Path parameters by name, decoded. */
  readonly parameters: ReadonlyMap<string, string>;
  readonly query: URLSearchParams;
  readonly reply: Reply;
  /** Monotonic. */
  readonly arrivedAtMs: number;
  /** Tells a client that waits with its body (`Expect: 100-continue`) to send it; to be called once all else is checked. */
  readonly continueBody: () => void;
}

/** A call that does work for a project: its body is one JSON object whose grammar has been checked. */
export interface WorkCall extends Call {
  readonly key: ApiKey;
  readonly body: JsonBody;
}

/** What people read about a route, and what /openapi.json is made of. */
export interface RouteDocument {
  readonly summary: string;
  readonly tag: 'OpenAI' | 'Rerank' | 'Health' | 'Administration' | 'Console';
  readonly request?: z.ZodType;
  /** When it is not JSON. */
  readonly requestType?: string;
  readonly response?: z.ZodType;
  readonly responseType?: string;
}

interface RouteBase {
  readonly method: Method;
  /** Template, e.g. `/admin/nodes/:id`. */
  readonly path: string;
  readonly form: ErrorForm;
  readonly document: RouteDocument;
}

/**
 * `work` needs an API key and reads the body first; `key` needs one and has no body; `admin` needs the admin token or a
 * console's session; `private` is open over loopback and else needs the admin token; `console` is open, but like `admin` never
 * over plain HTTP from elsewhere; `public` is open.
 */
export type Route =
  | (RouteBase & { readonly access: 'work'; readonly handle: (call: WorkCall) => void | Promise<void> })
  | (RouteBase & {
      readonly access: 'key' | 'admin' | 'private' | 'console' | 'public';
      readonly handle: (call: Call) => void | Promise<void>;
    });

export type Match =
  | { readonly kind: 'route'; readonly route: Route; readonly parameters: ReadonlyMap<string, string> }
  | { readonly kind: 'other-method'; readonly allow: readonly Method[] }
  | { readonly kind: 'none' };

const NO_PARAMETERS: ReadonlyMap<string, string> = new Map();
const NONE: Match = { kind: 'none' };

interface Pattern {
  readonly segments: readonly string[];
  readonly routes: Map<string, Route>;
}

/** Finds the route of a path: fixed ones by one look-up, those with parameters by comparing segments. */
export class RouteTable {
  readonly routes: readonly Route[];
  readonly #fixed = new Map<string, Map<string, Route>>();
  readonly #patterns: Pattern[] = [];

  constructor(routes: readonly Route[]) {
    this.routes = routes;
    for (const route of routes) this.#place(route.path).set(route.method, route);
  }

  /** @param path without the query, as it was sent */
  find(method: string, path: string): Match {
    const fixed = this.#fixed.get(path);
    if (fixed !== undefined) return chosen(fixed, method, NO_PARAMETERS);
    const segments = path.split('/', 12);
    for (const pattern of this.#patterns) {
      const parameters = compare(pattern.segments, segments);
      if (parameters !== null) return chosen(pattern.routes, method, parameters);
    }
    return NONE;
  }

  #place(path: string): Map<string, Route> {
    const routes = this.#fixed.get(path) ?? new Map<string, Route>();
    if (!path.includes('/:')) {
      this.#fixed.set(path, routes);
      return routes;
    }
    const segments = path.split('/');
    const known = this.#patterns.find((pattern) => pattern.segments.join('/') === path);
    if (known !== undefined) return known.routes;
    this.#patterns.push({ segments, routes });
    return routes;
  }
}

function chosen(routes: ReadonlyMap<string, Route>, method: string, parameters: ReadonlyMap<string, string>): Match {
  const route = routes.get(method);
  if (route !== undefined) return { kind: 'route', route, parameters };
  return { kind: 'other-method', allow: [...routes.values()].map((other) => other.method) };
}

function compare(pattern: readonly string[], segments: readonly string[]): ReadonlyMap<string, string> | null {
  if (pattern.length !== segments.length) return null;
  const parameters = new Map<string, string>();
  for (const [at, part] of pattern.entries()) {
    const segment = segments[at] ?? '';
    if (!part.startsWith(':')) {
      if (part !== segment) return null;
      continue;
    }
    const value = decoded(segment);
    if (value === null || value === '') return null;
    parameters.set(part.slice(1), value);
  }
  return parameters;
}

function decoded(segment: string): string | null {
  try {
    return decodeURIComponent(segment);
  } catch {
    return null;
  }
}
