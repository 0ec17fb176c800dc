/**
 * Checks the language of pages, comments, messages and test titles with textlint: `npm run lint:prose`. After `--`, the command
 * accepts the files to check. The rules are in `.textlint/vocabulary.yml`.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createLinter, loadTextlintrc } from 'textlint';
import ts from 'typescript';

/** Git's patterns for the files with prose. The generated page and the recorded histories repeat the texts of other files. */
const FILES = [
  '*.md',
  '*.ts',
  '*.mjs',
  '*.js',
  ':!docs/proofs.md',
  ':!test/releases/*.json',
  ':!test/public-surface/stored',
];

/** The comments, strings and templates of a source file, in order. A string without a space is not prose. */
function textsOf(source: ts.SourceFile) {
  const texts = new Map<number, { pos: number; end: number; isComment: boolean }>();
  const visit = (node: ts.Node): void => {
    const start = node.getStart(source);
    for (const { pos, end } of [
      ...(ts.getLeadingCommentRanges(source.text, node.pos) ?? []),
      ...(ts.getTrailingCommentRanges(source.text, node.end) ?? []),
    ])
      texts.set(pos, { pos, end, isComment: true });
    if ((ts.isStringLiteralLike(node) || ts.isTemplateExpression(node)) && /\s/.test(node.getText(source)))
      texts.set(start, { pos: start, end: node.end, isComment: false });
    if (!ts.isJSDoc(node)) node.getChildren(source).forEach(visit);
  };
  visit(source);
  return [...texts.values()].sort((a, b) => a.pos - b.pos);
}

/** A line of a comment without its marks. */
function commentLine(line: string): string {
  const text = line.replace(/^\s*(\/\/+|\/\*+|\*(?!\/))?\s*|\s*\*\/$/g, '');
  return text.replace(/\{@link ([^}]*)\}/g, '`$1`').replace(/</g, ' ');
}

/** A line of a string without quotes, escapes and the marks of Markdown's blocks. */
function stringLine(line: string): string {
  return line
    .replace(/\\n|^['"`]|['"`]$|(?<!\\)[<>#*|~]/g, ' ')
    .replace(/\\(.)/g, '$1')
    .trim();
}

/** The lines of a Markdown text with one paragraph for each text of a source file. Each has the number of its source line. */
function markdownOf(file: string, code: string): { text: string; line: number }[] {
  const source = ts.createSourceFile(file, code, ts.ScriptTarget.Latest, true);
  return textsOf(source).flatMap(({ pos, end, isComment }, index, texts) => {
    const first = source.getLineAndCharacterOfPosition(pos).line + 1;
    const raw = code.slice(pos, end).replace(/\$\{[^}]*\}/g, (match) => match.replace(/[^\n]/g, 'x'));
    const lines = raw.split('\n').map(isComment ? commentLine : stringLine);
    // A comment of several lines, and a string that continues after a plus sign, are one paragraph.
    const previous = texts[index - 1];
    const gap = previous?.isComment === isComment ? code.slice(previous.end, pos) : ';';
    const paragraph = /^(\n?[^\S\n]*|\s*\+\s*)$/.test(gap) ? lines : ['', ...lines];
    return paragraph.map((text, i) => ({ text, line: first + i + lines.length - paragraph.length }));
  });
}

async function main(files: readonly string[]): Promise<void> {
  const linter = createLinter({ descriptor: await loadTextlintrc() });
  let findings = 0;
  for (const file of files) {
    const content = readFileSync(file, 'utf8');
    const code = file.endsWith('.md') ? undefined : markdownOf(file, content);
    const text = code?.map((line) => line.text).join('\n') ?? content;
    for (const { loc, message } of (await linter.lintText(text, `${file}.md`)).messages) {
      findings += 1;
      const line = code?.[loc.start.line - 1]?.line ?? loc.start.line;
      console.log(`${file}:${line}  ${message.replace(/\s+/g, ' ')}`);
    }
  }
  console.log(`${findings} findings in ${files.length} files`);
  process.exitCode = findings > 0 ? 1 : 0;
}

const listFiles = ['ls-files', '-co', '--exclude-standard', '--', ...FILES];
const allFiles = () => execFileSync('git', listFiles, { encoding: 'utf8' }).trim().split('\n');
void main(process.argv.length > 2 ? process.argv.slice(2) : allFiles());
