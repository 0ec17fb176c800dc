import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import ts from 'typescript';
import { applyMutant, readMutants } from './mutants';

const SRC = path.resolve(__dirname, '../../src');

/** The identifiers of a program. */
function identifiersOf(source: string): string[] {
  const names: string[] = [];
  const visit = (node: ts.Node) => {
    if (ts.isIdentifier(node)) names.push(node.text);
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile('file.ts', source, ts.ScriptTarget.Latest));
  return names;
}

const readSource = (file: string) => readFileSync(path.join(SRC, file), 'utf8');
const FILES = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
const SRC_NAMES = new Set(FILES.flatMap((file) => identifiersOf(readSource(file))));

it.each(readMutants())('the code of the rule “$rule” occurs exactly once in $file', (mutant) => {
  expect(applyMutant(mutant, readSource(mutant.file))).not.toBeNull();
});

// A mutant with an old name throws an error when it runs. The simulation then detects the error instead of the missing rule.
it.each(readMutants())('the replacement for the rule “$rule” has only names that src has', (mutant) => {
  const declared = [...mutant.replacement.join('\n').matchAll(/\bconst (\w+)/g)].map(([, name]) => name);
  const names = identifiersOf(applyMutant(mutant, readSource(mutant.file)) ?? '');
  expect(names.filter((name) => !SRC_NAMES.has(name) && !declared.includes(name))).toEqual([]);
});
