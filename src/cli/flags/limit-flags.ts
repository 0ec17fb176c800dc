import { type Command, Option } from 'commander';
import type { LimitsChange } from '../../client';
import { UsageError } from '../exit-codes';
import { numberOr } from './request-flags';

/** The flags of `limits set`, as commander names their values. Only what was given is there. */
export interface LimitFlags {
  readonly sendsPerProject?: string;
  readonly readsPerProject?: string;
  readonly sendsTotal?: string;
  readonly readsTotal?: string;
  readonly projectWeight?: readonly string[];
}

/** Adds the flags to a command. Their values are checked by the client's own checker, which finds all problems at once. */
export function addLimitFlags(command: Command): Command {
  return command
    .option('--sends-per-project <rate>', 'messages of each project')
    .option('--reads-per-project <rate>', 'reads of the jobs of each project')
    .option('--sends-total <rate>', 'messages of all projects together')
    .option('--reads-total <rate>', 'reads of all projects together')
    .addOption(
      new Option(
        '--project-weight <project=number>',
        'the share of a project compared with others, 0.001 to 1000; may be given several times',
      ).argParser((value: string, before: readonly string[] | undefined) => [...(before ?? []), value]),
    );
}

/**
 * The change that the flags describe, its values unchecked.
 *
 * @throws UsageError when a weight names no project, or a project has two
 */
export function changeOfFlags(flags: LimitFlags): LimitsChange {
  const { projectWeight, ...rest } = flags;
  // The checker shows invalid values as they were given.
  const change = rest as LimitsChange;
  return projectWeight === undefined ? change : { ...change, projectWeights: weightsOf(projectWeight) };
}

function weightsOf(given: readonly string[]): NonNullable<LimitsChange['projectWeights']> {
  const weights = new Map<string, string>();
  const problems: string[] = [];
  for (const text of given) {
    // A project id may hold an equals sign, a weight can't.
    const at = text.lastIndexOf('=');
    const projectId = text.slice(0, Math.max(0, at));
    if (at < 1) {
      problems.push(
        `--project-weight: ${JSON.stringify(text)} is not PROJECT=NUMBER, e.g. docs=3 or docs=off`,
      );
    } else if (weights.has(projectId)) {
      problems.push(`--project-weight: ${JSON.stringify(projectId)} is given twice; give one weight`);
    } else {
      weights.set(projectId, text.slice(at + 1));
    }
  }
  if (problems.length > 0) throw new UsageError(problems);
  const values = [...weights].map(([projectId, text]) => [projectId, numberOr(text)] as const);
  return Object.fromEntries(values) as NonNullable<LimitsChange['projectWeights']>;
}
