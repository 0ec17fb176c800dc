/** What tests and the demo import: the sandbox as a library, and the client of one that runs as a process. */
export { SandboxControl } from './control-client';
export type { FaultReport } from './fault-board';
export { type FaultSetting, FaultSettingError } from './fault-setting';
export { FAULT_NAMES, type FaultName, faultsAsMarkdown } from './faults';
export type { JobChange } from './job-life';
export { JobError, type JobKey, type JobReport, type NewJob } from './jobs';
export type { Ending, JournalEntry, JournalFilter, JournalPrompt, WaitOptions } from './journal';
export { type Sandbox, type SandboxOptions, startSandbox } from './sandbox';
export { SEED_JOBS } from './seed';
export type { Turn, TurnPlan } from './turn';
