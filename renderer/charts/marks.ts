import type { BudgetView, MarkView } from '../../preload/contract.ts';
import type { I18n } from '../i18n/i18n.tsx';
import type { ChartMark } from './time-series.tsx';

/** A cut's event and its entry in the budget's diary are written within this. */
const SAME_MS = 1500;

/** Marks with a word that fits beside their line: a cut says from how many permits to how many. */
export function chartMarks(marks: readonly MarkView[], cuts: BudgetView['cuts'], { t, f }: I18n): readonly ChartMark[] {
  return marks.map(({ atMs, kind, sentence }) => {
    if (kind === 'restart') return { atMs, sentence, label: t('mark.restart') };
    if (kind !== 'cut') return { atMs, sentence, label: sentence };
    const cut = cuts.find((one) => Math.abs(one.atMs - atMs) <= SAME_MS);
    const label = cut ? t('mark.cutFromTo', { from: f.number(cut.from), to: f.number(cut.to) }) : t('mark.cut');
    return { atMs, sentence, label };
  });
}
