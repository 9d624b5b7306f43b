import type { ModelReport } from '../wire/control.ts';

/** A model as its engine shows it; what an engine does not say is left out and reported as unknown. */
export type ModelDraft = Pick<ModelReport, 'model' | 'tasks' | 'maxBatch'> & Partial<ModelReport>;

const UNKNOWN: Omit<ModelReport, 'model' | 'tasks' | 'maxBatch'> = {
  aliases: [],
  digest: null,
  contextTokens: null,
  maxInputTokens: null,
  width: null,
  tokenCounting: 'none',
  loaded: null,
  sizeBytes: null,
  tokensPerSecond: null,
  ttftMs: null,
  remoteHost: null,
  trial: false,
};

/** A model as reported, and what is learnt about it while it works. */
export class ModelFacts {
  #report: ModelReport;

  constructor(draft: ModelDraft) {
    this.#report = { ...UNKNOWN, ...draft };
  }

  get report(): ModelReport {
    return this.#report;
  }

  /** The engine itself has named a lower limit of one input. */
  learnLimit(tokens: number): void {
    const { maxInputTokens } = this.#report;
    if (maxInputTokens === null || tokens < maxInputTokens) this.#report = { ...this.#report, maxInputTokens: tokens };
  }

  /** What changes while the model stays the same: whether it is loaded, and with which window. */
  update(change: Partial<Pick<ModelReport, 'loaded' | 'contextTokens' | 'maxInputTokens' | 'sizeBytes'>>): void {
    this.#report = { ...this.#report, ...change };
  }
}
