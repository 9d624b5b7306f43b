import { activity } from './catalogue/activity.ts';
import { cloud } from './catalogue/cloud.ts';
import { fleet } from './catalogue/fleet.ts';
import { frame } from './catalogue/frame.ts';
import { roles } from './catalogue/roles.ts';

/** Every word of the console itself in every language. What the control plane says: `main/domain/said.ts`. */
export const CATALOGUE = { ...frame, ...fleet, ...roles, ...cloud, ...activity };
export type MessageKey = keyof typeof CATALOGUE;
