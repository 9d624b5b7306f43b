import type { EventEmitter } from 'node:events';

/** An event that a listener may prevent. */
export class PreventableEvent {
  defaultPrevented = false;

  constructor(members: object = {}) {
    Object.assign(this, members);
  }

  preventDefault(): void {
    this.defaultPrevented = true;
  }
}

/** @returns true when nobody prevented it. */
export function allowed(emitter: EventEmitter, name: string, members: object = {}, ...args: unknown[]): boolean {
  const event = new PreventableEvent(members);
  emitter.emit(name, event, ...args);
  return !event.defaultPrevented;
}
