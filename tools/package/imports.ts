/** The files and packages that the compiled code of an archive needs. */
import { cpSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { dependencies } from '../../package.json';

/** Copies the compiled files that the entry files import with relative paths, directly or indirectly, including type declarations. */
export function copyRequiredFiles(compiled: string, entries: readonly string[], folder: string): void {
  for (const file of entries.flatMap((entry) => findRequiredFiles(compiled, entry)))
    cpSync(path.join(compiled, file), path.join(folder, file));
}

function findRequiredFiles(compiled: string, entry: string): string[] {
  const found = new Set<string>([entry]);
  for (const file of found) {
    const code = readFileSync(path.join(compiled, file), 'utf8');
    for (const [, name = ''] of code.matchAll(
      /(?:require\(|require\.resolve\(|from |import\()["'](\.[^"']*)["']/g,
    )) {
      const extension = file.endsWith('.d.ts') ? '.d.ts' : '.js';
      const target = path.join(path.dirname(file), name);
      const isFile = existsSync(path.join(compiled, target + extension));
      found.add(isFile ? target + extension : path.join(target, `index${extension}`));
    }
  }
  return [...found];
}

/** Returns the packages that the compiled files import, with the versions of this project. */
export function findPackages(folder: string): Record<string, string> {
  const found = new Set<string>();
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!/\.(js|d\.ts)$/.test(file)) continue;
    const code = readFileSync(path.join(folder, file), 'utf8');
    for (const [, name = ''] of code.matchAll(/(?:require\(|from |import\()["']([^."'][^"']*)["']/g)) {
      found.add(name.split('/', name.startsWith('@') ? 2 : 1).join('/'));
    }
  }
  return Object.fromEntries(Object.entries(dependencies).filter(([name]) => found.has(name)));
}
