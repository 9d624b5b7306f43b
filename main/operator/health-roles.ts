import { ROLE_IDS, ROLES, type RoleId } from '../domain/roles.ts';
import { type Said, said, together, told } from '../domain/said.ts';
import type { ReasonCode } from '../router/reasons.ts';
import { type Item, SHOWS_AFTER_MS, titled } from './health-item.ts';
import type { House } from './house.ts';
import { isOpen, standingReasons } from './provider-views.ts';

/** A role that was asked for within this time is wanted, whatever it is set to. */
const ASKED_MS = 600_000;

/** A spend cap that lets nothing paid start. Where the role has its own machines it can wait; else every request fails. */
export function capItems(house: House): Item[] {
  return house.cloud.cappedOut().flatMap((capped): Item[] => {
    const { scope, id, name, reason, period, capUsd, untilMs: untilOnMs } = capped;
    const role = scope === 'role' ? (id as RoleId) : null;
    if (role !== null && !mayLeave(role, house)) return [];
    const served = role !== null && openProviders(role, house).length > 0;
    const why =
      reason === 'price_unknown'
        ? said('cap_no_price', { capUsd })
        : said(period === 'day' ? 'cap_day' : 'cap_month', { capUsd, untilOnMs });
    return [
      {
        id: `cap-${scope}-${id}`,
        code: 'spend_cap',
        severity: served ? 'warn' : 'error',
        ...titled(
          role === null ? said('title_cap_project', { name: name.slice(0, 128) }) : said('title_cap', { role }),
        ),
        ...told(why),
        needsPerson: !served,
        ...(role === null ? { page: 'budget', action: 'see-budget' } : { page: 'roles', target: role, action: 'look' }),
      },
    ];
  });
}

/** Roles that are wanted and that nobody serves: those with the same reason are one thing to do. */
export function unservedItems(house: House): Item[] {
  if (house.clock.wallMs() - house.app.startedAtMs < SHOWS_AFTER_MS) return [];
  const found = new Map<string, { readonly why: Said; readonly roles: RoleId[] }>();
  for (const role of ROLE_IDS) {
    const why = unserved(role, house);
    if (why === null) continue;
    const same = found.get(why.sentence);
    if (same) same.roles.push(role);
    else found.set(why.sentence, { why, roles: [role] });
  }
  return [...found.values()].map(({ why, roles }) => ({
    // By reason: one role more is the same thing to do, and no news.
    id: [why.code, ...(why.more ?? []).map(({ code }) => code)].join('-'),
    code: 'role_unserved',
    severity: 'error',
    ...titled(said('title_role_unserved', { roles: roles.join(', ') })),
    ...told(why),
    needsPerson: true,
    page: 'roles',
    target: roles.length === 1 ? (roles[0] ?? null) : null,
    action: 'look',
  }));
}

/** Has an item of its own, was meant by a person, or passes within seconds. */
const TOLD_ELSEWHERE: ReadonlySet<ReasonCode> = new Set([
  'cloud_paused',
  'spend_cap',
  'key_missing',
  'key_stale',
  'cloud_off',
  'node_silent',
  'unverified',
]);

function unserved(role: RoleId, house: House): Said | null {
  const settings = house.roles()[role];
  if (!settings.enabled) return null;
  const embeds = ROLES[role].task === 'embed';
  if (embeds && house.gate.roleSpace(role).state !== 'founded') return null;
  const admitted = house
    .routed()
    .filter(({ role: of, kind }) => of === role && (settings.policy !== 'local' || kind === 'local'))
    .filter(({ kind }) => settings.policy !== 'cloud' || kind === 'cloud');
  if (admitted.length === 0) {
    if (settings.policy === 'cloud') return withoutCloud(role, house);
    const wanted = embeds || settings.localModels !== 'auto' || isAsked(role, house);
    return wanted ? said('nobody_offers') : null;
  }
  const reasons = admitted.map((provider) => standingReasons(provider, house)[0]);
  // One without a reason serves, or rests for seconds.
  const codes = [...new Set(reasons.filter((code) => code !== undefined))];
  if (reasons.includes(undefined) || codes.every((code) => TOLD_ELSEWHERE.has(code))) return null;
  if (admitted.some(({ node }) => hasJustChanged(house, node))) return null;
  const causes = codes.slice(0, 3).map((code) => said(code));
  return together(said('role_unserved'), ...causes);
}

/** Where the key is all that is missing, that is the item. */
function withoutCloud(role: RoleId, house: House): Said | null {
  if (house.fleet.nodes().some(({ id }) => hasJustChanged(house, id))) return null;
  if (house.roles()[role].cloud.model === null) return said('role_no_cloud_model');
  return house.cloud.status().state === 'no-agent' ? said('no_agent') : null;
}

function hasJustChanged(house: House, id: string): boolean {
  const node = house.fleet.nodes().find((each) => each.id === id);
  if (node === undefined || node.state === 'ready') return false;
  return house.clock.wallMs() - node.stateSinceMs < SHOWS_AFTER_MS;
}

function isAsked(role: RoleId, house: House): boolean {
  const fromMs = house.clock.wallMs() - ASKED_MS;
  return house.requests.list().some(({ summary }) => summary.role === role && summary.arrivedAtMs >= fromMs);
}

function mayLeave(role: RoleId, house: House): boolean {
  const { enabled, policy } = house.roles()[role];
  return enabled && policy !== 'local';
}

function openProviders(role: RoleId, house: House) {
  return house.routed().filter((provider) => provider.role === role && isOpen(provider, null, house));
}
