import { describeParameter, type Parameter } from './fault-parameters';
import { type FaultRow, OPERATIONS } from './fault-row';
import { JOB_FAULTS } from './job-faults';
import { STRANGE_TEXTS } from './strange-texts';
import { WIRE_FAULTS } from './wire-faults';

/**
 * Every fault that the sandbox knows; the list on the command line and its documentation are made of this table.
 * A fault that says "processed" acts only on messages that the contract takes: a wrong key gets its 401 all the same.
 */
export const FAULTS = { ...WIRE_FAULTS, ...JOB_FAULTS, ...STRANGE_TEXTS };

export type FaultName = keyof typeof FAULTS;

export const FAULT_NAMES = Object.keys(FAULTS) as readonly FaultName[];

export function faultRow(name: FaultName): FaultRow {
  return FAULTS[name];
}

/** What every fault takes besides its own parameters. */
export const CONDITIONS = {
  times: 'ends after acting on so many requests; until cleared unless given',
  skip: 'lets the first so many requests pass',
  chance: 'acts with this probability, 0 to 1',
  operation: 'acts on get or message only',
} as const;

/** The list of faults as plain text. */
export function listFaults(): string {
  const width = Math.max(...FAULT_NAMES.map((name) => name.length)) + 2;
  const indent = ' '.repeat(width + 2);
  const lines = FAULT_NAMES.flatMap((name) => {
    const { meaning, operations, parameters } = faultRow(name);
    const own = Object.entries(parameters).map(([key, value]) => indent + showParameter(key, value));
    return [`  ${name.padEnd(width)}${meaning}${onlyOn(operations)}`, ...own];
  });
  const conditions = Object.entries(CONDITIONS).map(([key, meaning]) => `  ${key.padEnd(width)}${meaning}`);
  return [
    'Faults: --fault NAME[=VALUE][:key=value…][@project/job]; VALUE is the first of its own keys. All jobs without @.',
    '',
    ...lines,
    '',
    'Every fault also takes:',
    '',
    ...conditions,
    '',
  ].join('\n');
}

/** The list of faults as two Markdown tables, for the documentation. */
export function faultsAsMarkdown(): string {
  const cell = (value: string): string => value.replaceAll('|', '\\|');
  const rows = FAULT_NAMES.map((name) => {
    const { meaning, operations, parameters } = faultRow(name);
    const own = Object.entries(parameters).map(([key, parameter]) => {
      const fallback = parameter.fallback === null ? '' : ` = \`${parameter.fallback}\``;
      return `\`${key}\`${fallback}: ${describeParameter(parameter)}`;
    });
    return `| \`${name}\` | ${cell(meaning + onlyOn(operations))} | ${cell(own.join('<br>'))} |`;
  });
  const conditions = Object.entries(CONDITIONS).map(([key, meaning]) => `| \`${key}\` | ${cell(meaning)} |`);
  return [
    '| fault | what happens | its parameters |',
    '|---|---|---|',
    ...rows,
    '',
    '| every fault | |',
    '|---|---|',
    ...conditions,
    '',
  ].join('\n');
}

function showParameter(name: string, parameter: Parameter): string {
  return `${name}=${parameter.fallback ?? '…'} (${describeParameter(parameter)})`;
}

function onlyOn(operations: FaultRow['operations']): string {
  return operations.length === OPERATIONS.length ? '' : ` (${operations.join(', ')} only)`;
}
