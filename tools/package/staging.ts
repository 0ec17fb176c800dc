/** Where the artefacts are made, and what each of them carries. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export const ROOT = path.resolve(__dirname, '../..');
/** Always the same: its path gets into the workflow bundle, and with it into the worker's archive. */
export const STAGING = path.join(ROOT, 'artifacts/staging');

/** `src`, compiled. */
export const COMPILED = path.join(STAGING, 'dist');

/** The sandbox, and what it takes from `src`, compiled. */
export const COMPILED_SANDBOX = path.join(STAGING, 'sandbox');

/** The documents that all artefacts carry. */
export const DOCUMENTS = ['LICENSE', 'CHANGELOG.md'];

/** What callers in any language need beside the client: the request's rules, and what to test their own code with. */
export const PUBLISHED = ['request.schema.json', 'requests.json', 'workflow-id-vectors.json'];

/** @returns what the program has written to its standard output */
export function run(command: string, args: readonly string[], cwd = ROOT): string {
  const options = { cwd, encoding: 'utf8', maxBuffer: 2 ** 26 } as const;
  return execFileSync(command, args, { ...options, stdio: ['ignore', 'pipe', 'inherit'] });
}

export function writeJson(file: string, content: object): void {
  writeFileSync(file, `${JSON.stringify(content, null, 2)}\n`);
}

/**
 * A page as it holds outside the repository: with commands that run there, without links to what is not there, and without
 * comments for those who write it.
 */
export function adaptPage(page: string): void {
  const text = readFileSync(page, 'utf8')
    .replaceAll(/<!--.*?-->\n*/gs, '')
    .replaceAll(/npm run (?:-s )?starter -- /g, 'node dist/starter.js ')
    .replaceAll('npm run sandbox -- ', 'npx agent-follow-up-sandbox ')
    .replaceAll(/(?<!!)\[([^\]]+)\]\((?!\w+:|#)([^)#]+)[^)]*\)/g, (link, words: string, target: string) =>
      existsSync(path.join(path.dirname(page), target))
        ? link
        : words.replace(/^(?:docs\/)?([\w-]+)\.md$/, 'the page _$1_ of the project'),
    );
  writeFileSync(page, text);
}
