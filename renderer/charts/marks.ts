import type { BudgetView, MarkView } from '../../preload/contract.ts';
import type { I18n } from '../i18n/i18n.tsx';
import type { ChartMark } from './time-series.tsx';

/** A cut's event and its entry in the budget's diary are written within this. */
const SAME_MS = 1500;

/** Marks with a word that fits beside their line: a cut says from how many permits to how many. */
export function chartMarks(marks: readonly MarkView[], cuts: BudgetView['cuts'], i18n: I18n): readonly ChartMark[] {
  const { t, f } = i18n;
  return marks.map(({ atMs, kind, sentence: english, says }) => {
    const sentence = i18n.sayBeside(english, says);
    if (kind === 'restart') return { atMs, sentence, label: t('mark.restart') };
    // "studio: the connection broke" is told at the cursor; beside the line stands who it was.
    if (kind !== 'cut') return { atMs, sentence, label: String(says?.params?.name ?? english.split(': ', 1)[0]) };
    const cut = nearest(cuts, atMs);
    if (!cut) return { atMs, sentence, label: t('mark.cut') };
    const label = t('mark.cutFromTo', { from: f.number(cut.from), to: f.number(cut.to) });
    return { atMs: cut.atMs, sentence, label };
  });
}

function nearest(cuts: BudgetView['cuts'], atMs: number): BudgetView['cuts'][number] | null {
  let best: BudgetView['cuts'][number] | null = null;
  for (const cut of cuts) {
    const far = Math.abs(cut.atMs - atMs);
    if (far <= SAME_MS && (best === null || far < Math.abs(best.atMs - atMs))) best = cut;
  }
  return best;
}
