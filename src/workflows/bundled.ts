/*
 * The packages for the client and for the plugin have their own copies of this file. Both copies share only the global object of the
 * workflow, so the mark is a property of this object.
 */
const MARK = Symbol.for('agent-follow-up.workflows');

/** Marks that the worker of this workflow code also runs follow-ups. The workflows of follow-ups call this function when they load. */
export function markWorkflowsAsBundled(): void {
  Object.assign(globalThis, { [MARK]: true });
}

/** Returns whether the worker of this workflow code also runs follow-ups. */
export function areWorkflowsBundled(): boolean {
  return MARK in globalThis;
}
