import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { SCENARIO_RULES } from './scenarios';

/*
 * npm run mutants -- [--only TEXT] [--most SEEDS]: removes each rule of mutants.diff from the code, one at a time, and prints the seed in which
 * the simulation fails. `--only` selects rules that have the text in their names; `--most` limits the number of seeds.
 */

/** A rule of docs/guarantees.md, and the change that removes the rule from a file of src. The text occurs exactly once in the file. */
interface Mutant {
  readonly rule: string;
  readonly file: string;
  /** The option of `npm run simulate` for the worlds that are played. */
  readonly of: keyof typeof MAX_SEEDS;
  readonly text: string[];
  readonly replacement: string[];
}

/** The maximum number of seeds for each option. If a mutant survives, the plans or the oracle of the simulation are incomplete. */
const MAX_SEEDS = { seeds: 10_000, batches: 2_000, scenarios: SCENARIO_RULES.length } as const;

const ROOT = path.resolve(__dirname, '../..');

/**
 * Reads mutants.diff. `@@` begins the rules for one option of `npm run simulate`, and `---` begins the rules of a file. A rule has its name, the
 * lines to remove (`-`) and their replacement (`+`).
 */
export function readMutants(): Mutant[] {
  const table = readFileSync(path.join(__dirname, 'mutants.diff'), 'utf8');
  const mutants: Mutant[] = [];
  let [of, file]: [Mutant['of'], string] = ['seeds', ''];
  for (const line of table.split('\n').filter(Boolean)) {
    if (line.startsWith('@@ ')) of = line.slice(3) as Mutant['of'];
    else if (line.startsWith('--- ')) file = line.slice(4);
    else if (line.startsWith('-')) mutants.at(-1)?.text.push(line.slice(1));
    else if (line.startsWith('+')) mutants.at(-1)?.replacement.push(line.slice(1));
    else mutants.push({ rule: line, file, of, text: [], replacement: [] });
  }
  return mutants;
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: { only: { type: 'string', default: '' }, most: { type: 'string' } },
  });
  const left = readMutants().filter(({ of, rule }) => `${of}: ${rule}`.includes(values.only));
  const { length } = left;
  let survivors = 0;
  // On each core, one mutant runs with a separate copy of the code.
  const playAll = async () => {
    for (let each = left.shift(); each !== undefined; each = left.shift()) {
      const outcome = await play(each, values.most ?? String(MAX_SEEDS[each.of]));
      if (!outcome.startsWith('seed')) survivors += 1;
      process.stdout.write(`${each.rule}: ${outcome}\n`);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, playAll));
  process.stdout.write(`${length} mutants, ${survivors} survived\n`);
  return survivors;
}

/** @returns the source without the rule; null unless the rule's text occurs exactly once */
export function applyMutant({ text, replacement }: Mutant, source: string): string | null {
  const parts = source.split(text.join('\n'));
  return parts.length === 2 ? parts.join(replacement.join('\n')) : null;
}

/** Plays the mutant. @returns the seed that violates a guarantee, or the reason why none was found */
async function play(mutant: Mutant, most: string): Promise<string> {
  const { file, of } = mutant;
  const cache = path.join(ROOT, '.cache');
  await mkdir(cache, { recursive: true });
  const cwd = await mkdtemp(path.join(cache, 'mutant-'));
  try {
    for (const part of ['src', 'sandbox', 'test/simulation', 'package.json', 'tsconfig.json'])
      await cp(path.join(ROOT, part), path.join(cwd, part), { recursive: true });
    await symlink(path.join(ROOT, 'node_modules'), path.join(cwd, 'node_modules'));
    const target = path.join(cwd, 'src', file);
    const changed = applyMutant(mutant, await readFile(target, 'utf8'));
    if (changed === null)
      return `the rule's text does not occur exactly once in ${file}; update mutants.diff`;
    await writeFile(target, changed);
    const args = ['--import', 'tsx', 'test/simulation/main.ts', `--${of}`, `1..${most}`, '--until-violation'];
    const played = promisify(execFile)(process.execPath, args, { cwd, maxBuffer: 1e8 });
    const end = await played.catch((error: unknown) => error as Error & Awaited<typeof played>);
    const found = end.stdout.split('\n').find((line) => line.startsWith('seed'));
    return (
      found ??
      (end instanceof Error ? `the simulation could not run: ${end.stderr.trim().slice(-300)}` : 'survives')
    );
  } finally {
    await rm(cwd, { recursive: true, force: true });
  }
}

if (require.main === module)
  void main().then((survivors) => {
    process.exitCode = survivors > 0 ? 1 : 0;
  });
