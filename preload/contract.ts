import type { z } from 'zod';
import { activityOperations } from './contract/activity.ts';
import { cloudOperations } from './contract/cloud.ts';
import type { Operation } from './contract/common.ts';
import { fleetOperations } from './contract/fleet.ts';
import { gateOperations } from './contract/gate.ts';
import { keysOperations } from './contract/keys.ts';
import { requestsOperations } from './contract/requests.ts';
import { rolesOperations } from './contract/roles.ts';
import { settingsOperations } from './contract/settings.ts';

export * from './contract/activity.ts';
export * from './contract/bridge.ts';
export * from './contract/browser.ts';
export * from './contract/browser-names.ts';
export * from './contract/channels.ts';
export * from './contract/cloud.ts';
export * from './contract/common.ts';
export * from './contract/feed.ts';
export * from './contract/fleet.ts';
export * from './contract/gate.ts';
export * from './contract/keys.ts';
export * from './contract/names.ts';
export * from './contract/requests.ts';
export * from './contract/roles.ts';
export * from './contract/settings.ts';
export * from './contract/topics.ts';

/**
 * Everything a console can ask, over IPC and over HTTP alike: name -> input and output. Inputs are parsed where they arrive;
 * outputs are stripped to their schema before they leave. The cloud key is not here: it travels as bytes, never as a value.
 */
export const OPERATIONS = {
  ...fleetOperations,
  ...rolesOperations,
  ...gateOperations,
  ...cloudOperations,
  ...requestsOperations,
  ...activityOperations,
  ...keysOperations,
  ...settingsOperations,
} as const satisfies Record<string, Operation>;

export type OperationName = keyof typeof OPERATIONS;
/** What a caller writes: members with defaults may be left out. */
export type Input<Name extends OperationName> = z.input<(typeof OPERATIONS)[Name]['input']>;
/** What an implementation receives. */
export type ParsedInput<Name extends OperationName> = z.output<(typeof OPERATIONS)[Name]['input']>;
export type Output<Name extends OperationName> = z.output<(typeof OPERATIONS)[Name]['output']>;

export function isOperationName(name: string): name is OperationName {
  return Object.hasOwn(OPERATIONS, name);
}

/** One function per operation: what `main/operator` implements and both doors call. */
export type Operations = {
  readonly [Name in OperationName]: (input: ParsedInput<Name>) => Promise<Output<Name>>;
};
