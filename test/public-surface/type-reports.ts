import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { CompilerState, Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor';
import ts from 'typescript';

const ROOT = path.resolve(__dirname, '../..');
const DIST = path.join(ROOT, 'dist');

/** The entries of the packages, and the names of their reports. */
const ENTRIES = {
  client: 'client',
  testing: 'client-testing',
  workflow: 'client-workflow',
  plugin: 'plugin',
};

/**
 * Types that callers in other languages and receivers of notifications depend on. No package exports all of
 * these types, so they have a separate report.
 */
const WORKFLOW_TYPES = `
export { BatchInput, BatchUpdate } from '${DIST}/batch/memo';
export { BatchItemResult, BatchProgress, BatchSummary } from '${DIST}/batch/progress';
export { Notification } from '${DIST}/contract/activities';
export { RecordedOutcome } from '${DIST}/contract/outcome';
export { FollowUpRequest } from '${DIST}/contract/request';
export { DeliveryDecision, FailureDetails, FollowUpProgress, FollowUpResult } from '${DIST}/contract/result';
`;

/** Writes the type declarations of the sandbox, which `npm run build` does not compile. */
function declareSandbox(outDir: string): string {
  const { config } = ts.readConfigFile(path.join(ROOT, 'tsconfig.json'), (file) => ts.sys.readFile(file)) as {
    config: unknown;
  };
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, ROOT);
  const overrides = { noEmit: false, emitDeclarationOnly: true, sourceMap: false, rootDir: ROOT, outDir };
  ts.createProgram([path.join(ROOT, 'sandbox/index.ts')], { ...options, ...overrides }).emit();
  return path.join(outDir, 'sandbox/index.d.ts');
}

function reportConfig(
  folder: string,
  name: string,
  entries: Readonly<Record<string, string>>,
): ExtractorConfig {
  const compilerOptions = { target: 'es2022', module: 'node16', types: ['node'], strict: true };
  return ExtractorConfig.prepare({
    packageJsonFullPath: path.join(ROOT, 'package.json'),
    configObjectFullPath: undefined,
    configObject: {
      projectFolder: ROOT,
      mainEntryPointFilePath: entries[name] ?? '',
      compiler: {
        overrideTsconfig: {
          compilerOptions: { ...compilerOptions, skipLibCheck: true },
          files: Object.values(entries),
        },
      },
      // A type that no entry exports is in the report if an exported type uses it.
      apiReport: {
        enabled: true,
        includeForgottenExports: true,
        reportFileName: name,
        reportFolder: folder,
        reportTempFolder: path.join(folder, 'temporary'),
      },
      messages: { extractorMessageReporting: { default: { logLevel: ExtractorLogLevel.None } } },
    },
  });
}

/** Returns the type declarations of every report by its name, and writes the declarations that are not in `dist`. */
async function findEntries(folder: string): Promise<Record<string, string>> {
  const workflows = path.join(folder, 'workflows.d.ts');
  await writeFile(workflows, WORKFLOW_TYPES);
  const entries: Record<string, string> = { sandbox: declareSandbox(folder), workflows };
  for (const [file, name] of Object.entries(ENTRIES)) entries[name] = path.join(DIST, `entries/${file}.d.ts`);
  return entries;
}

/**
 * Returns a report of the exported types of each entry, from the declarations in `dist`. The reports have no comments. A private
 * member, or a type that no exported type uses, does not appear.
 */
export async function createTypeReports(): Promise<Record<string, string>> {
  // The SDK's types are found only from a folder in this project.
  await mkdir(path.join(ROOT, '.cache'), { recursive: true });
  const folder = await mkdtemp(path.join(ROOT, '.cache/public-surface-'));
  try {
    const entries = await findEntries(folder);
    const reports: Record<string, string> = {};
    let compilerState: CompilerState | undefined;
    for (const name of Object.keys(entries)) {
      const config = reportConfig(folder, name, entries);
      compilerState ??= CompilerState.create(config);
      const { errorCount } = Extractor.invoke(config, {
        compilerState,
        localBuild: true,
        messageCallback: (message) => {
          message.handled = message.messageId.startsWith('console-');
        },
      });
      if (errorCount > 0) throw new Error(`API Extractor reports ${errorCount} errors for ${name}.`);
      reports[`${name}.api.md`] = await readFile(path.join(folder, `${name}.api.md`), 'utf8');
    }
    return reports;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
