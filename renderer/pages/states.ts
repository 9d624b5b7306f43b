import type { NodeView, ProviderView, VerdictView } from '../../preload/contract.ts';
import type { Tone } from '../components/status.tsx';

/** How states look everywhere: the tone of a word, never the only bearer of its meaning. */
export const NODE_TONE: Readonly<Record<NodeView['state'], Tone>> = {
  ready: 'ok',
  degraded: 'warn',
  draining: 'idle',
  unreachable: 'bad',
  unknown: 'idle',
  maintenance: 'idle',
  error: 'bad',
};

export const PROVIDER_TONE: Readonly<Record<ProviderView['state'], Tone>> = {
  ready: 'ok',
  busy: 'ok',
  ineligible: 'warn',
  parked: 'warn',
  unreachable: 'bad',
  disabled: 'idle',
};

export function verdictTone(verdict: VerdictView['verdict']): Tone {
  if (verdict === 'pass') return 'ok';
  if (verdict === 'pass-reduced') return 'warn';
  return verdict === 'unverified' ? 'idle' : 'bad';
}

/** Machines first by name; the app's own agent last, as a stable order that no figure changes. */
export function byName(a: NodeView, b: NodeView): number {
  return Number(a.embedded) - Number(b.embedded) || a.name.localeCompare(b.name);
}

/** Roles that this machine does work of now. What it could do and does not, Fleet says with its reason. */
export function servedBy({ roles }: Pick<NodeView, 'roles'>): string {
  return roles.flatMap(({ role, serving }) => (serving ? [role] : [])).join(', ');
}
