import { INELIGIBLE } from '../domain/sentences/routing.ts';

/** Every reason for which a provider does not take an item, by its stable code. */
export type ReasonCode = keyof typeof INELIGIBLE;

export const isReasonCode = (code: string): code is ReasonCode => Object.hasOwn(INELIGIBLE, code);
