/** Branded ids: a node's id never passes for a provider's. Values are opaque outside the module that makes them. */
declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]: Name };

export type NodeId = Branded<'node'>;
export type EngineId = Branded<'engine'>;
export type ProviderId = Branded<'provider'>;
export type ProjectId = Branded<'project'>;
export type RequestId = Branded<'request'>;
/** `<role>-<8 hex>`. */
export type SpaceId = Branded<'space'>;

/**
 * A provider is one model of one engine on one node doing one role's work. The parts are percent-encoded, so that the id
 * is unambiguous in a URL path and in a log line.
 */
export function providerId(role: string, node: NodeId, engine: EngineId, model: string): ProviderId {
  return [role, node, engine, model].map(encodeURIComponent).join('~') as ProviderId;
}
