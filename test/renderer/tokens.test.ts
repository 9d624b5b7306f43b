import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const css = readFileSync(new URL('../../renderer/styles/tokens.css', import.meta.url), 'utf8');
const tokens = new Map(
  [...css.matchAll(/--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)/g)].map(([, name, light, dark]) => [
    name,
    [light, dark] as const,
  ]),
);

/** WCAG 2.2: (L1 + 0.05) / (L2 + 0.05) of relative luminances. */
function contrast(one: string, other: string): number {
  const luminance = (hex: string) =>
    [1, 3, 5]
      .map((at) => Number.parseInt(hex.slice(at, at + 2), 16) / 255)
      .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
      .reduce((sum, c, channel) => sum + c * ([0.2126, 0.7152, 0.0722][channel] ?? 0), 0);
  const [low = 0, high = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}
const colour = (name: string, theme: 0 | 1): string => {
  const pair = tokens.get(name);
  if (!pair) throw new Error(`no token ${name}`);
  return pair[theme] ?? '';
};
const series = ['blue', 'orange', 'green', 'purple', 'sky', 'amber', 'grey'].map((name) => `series-${name}`);

describe.each([
  ['light', 0],
  ['dark', 1],
] as const)('colours of the %s theme', (_name, theme) => {
  it.each(['text', 'quiet', 'accent', 'ok', 'warn', 'bad', 'idle'])('%s reads on every ground: 4.5 to 1', (name) => {
    for (const ground of ['bg', 'panel', 'raised'])
      expect(contrast(colour(name, theme), colour(ground, theme)), ground).toBeGreaterThanOrEqual(4.5);
  });

  it('words on the accent read', () => {
    expect(contrast(colour('on-accent', theme), colour('accent', theme))).toBeGreaterThanOrEqual(4.5);
  });

  it.each([...series, 'edge'])('%s is seen as a mark: 3 to 1', (name) => {
    for (const ground of ['bg', 'panel'])
      expect(contrast(colour(name, theme), colour(ground, theme)), ground).toBeGreaterThanOrEqual(3);
  });
});

it('reckons contrast as WCAG does: black on white is 21 to 1', () => {
  expect(contrast('#000000', '#ffffff')).toBeCloseTo(21, 10);
});
