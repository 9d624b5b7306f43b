import type { NodeId } from '../domain/ids.ts';
import type { FleetRegistry } from '../fleet/registry.ts';
import type { AgentPort } from './ports.ts';

/** The sessions of the fleet as the cloud's way to its agents. */
export function fleetAgents(fleet: Pick<FleetRegistry, 'nodes' | 'get'>): AgentPort {
  const nameOf = (node: NodeId) => fleet.get(node)?.name ?? node;
  return {
    ready: () =>
      fleet
        .nodes()
        .filter(({ lane }) => lane !== null)
        .map(({ id }) => ({ node: id, name: nameOf(id) })),
    name: nameOf,
    sendBinary: (node, frame, sent) => {
      const lane = fleet.get(node)?.lane ?? null;
      if (lane === null) return false;
      void lane.push(frame).then(sent);
      return true;
    },
    send: (node, message) => fleet.get(node)?.lane?.ask(message) ?? false,
  };
}
