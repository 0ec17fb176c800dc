import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { parseArgs, promisify } from 'node:util';

/* npm run mutants: takes out each rule of mutants.diff, one after the other, and tells which seed notices it. */

/** A rule that docs/guarantees.md promises, and how it is taken out of a file of src: the text stands in it once. */
interface Mutant {
  readonly rule: string;
  readonly file: string;
  /** Which worlds are played. */
  readonly of: keyof typeof MAX_SEEDS;
  readonly text: string[];
  readonly replacement: string[];
}

/** By the option of `npm run simulate`. A mutant that survives them is a hole in what the simulation draws, or in its oracle. */
const MAX_SEEDS = { seeds: 10_000, batches: 2_000 } as const;

const ROOT = path.resolve(__dirname, '../..');

/** `@@` which worlds, `---` a file, and of each rule its name, the lines that hold it, and those that come replacement. */
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
  // One for each core: they share nothing.
  const playAll = async () => {
    for (let each = left.shift(); each !== undefined; each = left.shift()) {
      const end = await play(each, values.most ?? String(MAX_SEEDS[each.of]));
      if (!end.startsWith('seed')) survivors += 1;
      process.stdout.write(`${each.rule}: ${end}\n`);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, playAll));
  process.stdout.write(`${length} mutants, ${survivors} survived\n`);
  return survivors;
}

/** @returns the file of src without the rule; null where the rule does not stand in it once */
export function applyMutant({ text, replacement }: Mutant, source: string): string | null {
  const parts = source.split(text.join('\n'));
  return parts.length === 2 ? parts.join(replacement.join('\n')) : null;
}

/** @returns which seed has found it, after how many worlds */
async function play(mutant: Mutant, most: string): Promise<string> {
  const { file, of } = mutant;
  const cwd = await mkdtemp(path.join(ROOT, '.cache', 'mutant-'));
  try {
    for (const part of ['src', 'sandbox', 'test/simulation', 'package.json', 'tsconfig.json'])
      await cp(path.join(ROOT, part), path.join(cwd, part), { recursive: true });
    await symlink(path.join(ROOT, 'node_modules'), path.join(cwd, 'node_modules'));
    const target = path.join(cwd, 'src', file);
    const changed = applyMutant(mutant, await readFile(target, 'utf8'));
    if (changed === null) return `its text does not stand once in ${file}`;
    await writeFile(target, changed);
    const args = ['--import', 'tsx', 'test/simulation/main.ts', `--${of}`, `1..${most}`, '--until-violation'];
    const played = promisify(execFile)(process.execPath, args, { cwd, maxBuffer: 1e8 });
    const end = await played.catch((error: unknown) => error as Error & Awaited<typeof played>);
    const found = end.stdout.split('\n').find((line) => line.startsWith('seed'));
    return found ?? (end instanceof Error ? `can't be played: ${end.stderr.trim().slice(-300)}` : 'survives');
  } finally {
    await rm(cwd, { recursive: true, force: true });
  }
}

if (require.main === module)
  void main().then((survivors) => {
    process.exitCode = survivors > 0 ? 1 : 0;
  });
