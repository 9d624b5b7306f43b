import { ROLE_IDS } from '../../preload/contract/names.ts';

export type SeriesColour = 'blue' | 'orange' | 'green' | 'purple' | 'sky' | 'amber' | 'grey';
export type Marker = 'circle' | 'square' | 'triangle' | 'diamond' | 'cross';

/** How one entity looks on every chart, for ever: colour, dash and marker, so that colour is never needed. */
export interface SeriesStyle {
  readonly colour: SeriesColour;
  readonly dash: string;
  readonly marker: Marker;
}

const style = (colour: SeriesColour, dash: string, marker: Marker): SeriesStyle => ({ colour, dash, marker });
const SOLID = '';
const LONG = '6 3';
const SHORT = '2 3';
const MIXED = '8 3 2 3';
const DASHES = [SOLID, LONG, SHORT, MIXED] as const;
const MARKERS: readonly Marker[] = ['circle', 'square', 'triangle', 'diamond', 'cross'];

const FIXED: ReadonlyMap<string, SeriesStyle> = new Map([
  [`queue.${ROLE_IDS[0]}`, style('sky', SOLID, 'circle')],
  [`queue.${ROLE_IDS[1]}`, style('blue', LONG, 'square')],
  [`queue.${ROLE_IDS[2]}`, style('green', SHORT, 'triangle')],
  [`queue.${ROLE_IDS[3]}`, style('purple', SOLID, 'diamond')],
  [`queue.${ROLE_IDS[4]}`, style('grey', MIXED, 'cross')],
  ['latency.p50', style('blue', SOLID, 'circle')],
  ['latency.p95', style('blue', LONG, 'square')],
  ['latency.p99', style('blue', SHORT, 'triangle')],
  ['permits.inFlight', style('orange', SOLID, 'circle')],
  ['permits.effective', style('orange', SOLID, 'square')],
  ['permits.ceiling', style('grey', LONG, 'diamond')],
  ['running', style('blue', SOLID, 'circle')],
  ['tokensPerSecond', style('green', LONG, 'square')],
]);

/** Orange belongs to the cloud, blue and green to local work. */
const FAMILIES: Readonly<Record<'local' | 'cloud', readonly SeriesColour[]>> = {
  local: ['blue', 'sky', 'green', 'purple'],
  cloud: ['orange', 'amber'],
};

/** Known series have their own look; others get one from a hash of their id, inside the family of their kind. */
export function seriesStyle(
  id: string,
  kind: 'local' | 'cloud' = id.startsWith('429.') ? 'cloud' : 'local',
): SeriesStyle {
  const fixed = FIXED.get(id);
  if (fixed) return fixed;
  const hash = fnv1a(id);
  const family = FAMILIES[kind];
  return style(
    family[hash % family.length] ?? 'grey',
    DASHES[(hash >>> 4) % DASHES.length] ?? SOLID,
    MARKERS[(hash >>> 8) % MARKERS.length] ?? 'circle',
  );
}

export const seriesVar = (colour: SeriesColour): string => `var(--series-${colour})`;

/** FNV-1a, 32 bits. */
function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193) >>> 0;
  return hash;
}

/** Path of a marker of about 6 px around (x, y). */
export function markerPath(marker: Marker, x: number, y: number): string {
  const r = 3;
  switch (marker) {
    case 'square':
      return `M${x - r},${y - r}h${2 * r}v${2 * r}h${-2 * r}z`;
    case 'triangle':
      return `M${x},${y - 3.5}l3.5,6.5h-7z`;
    case 'diamond':
      return `M${x},${y - 4}l4,4l-4,4l-4,-4z`;
    case 'cross':
      return `M${x - 3},${y - 1}h2v-2h2v2h2v2h-2v2h-2v-2h-2z`;
    case 'circle':
      return `M${x - r},${y}a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0z`;
  }
}
