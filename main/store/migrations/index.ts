import { initial } from './001-initial.ts';
import type { Migration } from './migration.ts';

/** Oldest first. */
export const MIGRATIONS: readonly Migration[] = [initial];
