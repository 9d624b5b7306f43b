import { activity } from './catalogue/activity.ts';
import { cloud } from './catalogue/cloud.ts';
import { fleet } from './catalogue/fleet.ts';
import { frame } from './catalogue/frame.ts';
import { reasons } from './catalogue/reasons.ts';
import { roles } from './catalogue/roles.ts';

/** Every word of the console in every language. Reasons and errors of the control plane: `errors.ts`. */
export const CATALOGUE = { ...frame, ...fleet, ...roles, ...cloud, ...activity, ...reasons };
export type MessageKey = keyof typeof CATALOGUE;
