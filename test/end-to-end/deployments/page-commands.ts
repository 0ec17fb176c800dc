import { readFileSync } from 'node:fs';
import path from 'node:path';
import { ROOT } from '../../harness/worker-process';

/** The page waits half a minute for a worker. On a busy machine, only the timeout of the test ends the wait. */
const RETRIES = { '--retry 30 ': '--retry 800 ' };

/** Returns the blocks of shell commands in a section of a page, with other values instead of the page's examples. */
export function readPageCommands(
  page: string,
  heading: string,
  values: Readonly<Record<string, string>>,
): string[] {
  const sections = readFileSync(path.join(ROOT, page), 'utf8').split(/^## /m);
  const section = sections.find((each) => each.startsWith(`${heading}\n`)) ?? '';
  return [...section.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, commands = '']) =>
    Object.entries({ ...values, ...RETRIES }).reduce(
      (text, [example, value]) => text.replaceAll(example, value),
      commands,
    ),
  );
}
