import {
  type EnrolmentOptions,
  STEP_CODES,
  type StepCode,
  type StepDetail,
  type StepReport,
  type StepState,
} from '../../agent/wire/enrolment.ts';
import { type Said, said } from '../domain/said.ts';

/** The last that was heard of one step. */
export interface Step {
  readonly code: StepCode;
  readonly state: StepState;
  readonly percent: number | null;
  readonly detail: Said | null;
  readonly atMs: number;
}

export const stepSentence = (code: StepCode): Said => said(`enrol_${code}`);
export const detailSentence = (detail: StepDetail): Said => said(`enrol_${detail}`);

/**
 * The steps after one more report: each once, in the order of the installation. A run that begins again at an earlier step has
 * yet to do the later ones, so what an earlier run said of those that did not end well is forgotten. Until a step is run again it
 * has failed for the reason that was told first: a machine whose join was refused here knows less of why than is known here.
 */
export function withStep(
  steps: readonly Step[],
  report: Omit<StepReport, 'v' | 'detail'>,
  detail: Said | null,
  atMs: number,
): readonly Step[] {
  const before = steps.find(({ code }) => code === report.code);
  if (before?.state === 'failed' && report.state === 'failed') return steps;
  const step: Step = { code: report.code, state: report.state, percent: report.percent, detail, atMs };
  const place = STEP_CODES.indexOf(step.code);
  const kept = steps.filter(
    ({ code, state }) => code !== step.code && (state === 'done' || STEP_CODES.indexOf(code) < place),
  );
  return [...kept, step].sort((a, b) => STEP_CODES.indexOf(a.code) - STEP_CODES.indexOf(b.code));
}

/** What the machine is to do, as it reads it. */
export function optionsFor(
  wish: { readonly model: string | null; readonly engine: 'ollama' | null },
  controlPlane: string,
): EnrolmentOptions {
  return { v: 1, model: wish.model, engine: wish.engine, controlPlane };
}
