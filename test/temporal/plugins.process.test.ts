import { randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { temporal } from '@temporalio/proto';
import { newSendCommand } from '../cli/commands/run-cli';
import { ProcessEnvironment } from '../harness/process-environment';
import { mustRun, Program } from '../harness/program';
import { temporaryFolder } from '../harness/temporary-folder';
import { ROOT } from '../harness/worker-process';

const { history, workflowservice } = temporal.api;
const { DescribeWorkflowExecutionResponse: describedAs } = workflowservice.v1;
const PROMPT = 'Replace the phrase sesquipedalian-prompt everywhere.';

const folder = temporaryFolder();

const at = (name: string) => path.join(folder, name);

/** Writes an ES module with a payload converter that reads only payloads that it has written. */
async function writeMarkingPlugin(): Promise<string> {
  const common = JSON.stringify(path.join(ROOT, 'node_modules/@temporalio/common'));
  await writeFile(
    at('payload-converter.js'),
    `const { defaultPayloadConverter: json } = require(${common});
     const marked = (payload, mark) => ({ ...payload, metadata: { ...payload.metadata, mark } });
     exports.payloadConverter = {
       toPayload: (value) => marked(json.toPayload(value), new Uint8Array([1])),
       fromPayload(payload) {
         if (payload.metadata.mark === undefined) throw new Error('another payload converter has written this payload');
         return json.fromPayload(payload);
       },
     };`,
  );
  await writeFile(
    at('marking.mjs'),
    `import { SimplePlugin } from ${JSON.stringify(path.join(ROOT, 'node_modules/@temporalio/plugin/lib/index.js'))};
     const dataConverter = { payloadConverterPath: ${JSON.stringify(at('payload-converter.js'))} };
     export default async () => new SimplePlugin({ name: 'marking', dataConverter });`,
  );
  return path.relative(process.cwd(), at('marking.mjs'));
}

it('the example for encryption keeps prompt and link out of the Temporal server and the logs, also next to a plugin with a payload converter', async () => {
  await writeFile(at('key'), randomBytes(32).toString('base64'));
  const plugins = ['examples/encryption/plugin.js', await writeMarkingPlugin()];
  // The converters of the second plugin are added to the codec of the first one.
  const env = { FOLLOW_UP_PLUGINS: plugins.join(', '), PAYLOAD_KEY_FILE: at('key') };
  await ProcessEnvironment.with({ env: { LOG_LEVEL: 'debug', ...env } }, async (environment) => {
    const worker = await environment.startWorker();
    const { changed } = await worker.waitForLog(/^bundled the workflows$/);
    expect(changed).toEqual(['payloadConverterPath']);
    const { args, workflowId } = newSendCommand(environment);
    const variables = { FOLLOW_UP_TASK_QUEUE: environment.taskQueue, ...env };
    const cli = (...cliArgs: string[]) => Program.startCli([...cliArgs, '--json'], variables).waitForEnd();
    const sent = await cli(...args, '--prompt', PROMPT);
    expect(sent).toMatchObject({ code: 0 });
    const { prLink } = JSON.parse(sent.stdout) as { prLink: string };
    expect(prLink).toMatch(/^http.*\/pull\//);
    expect(JSON.parse((await cli('status', workflowId)).stdout)).toMatchObject({ end: { prLink } });

    const { workflow, workflowService, options } = environment.client;
    const request = { namespace: options.namespace, execution: { workflowId } };
    const parts = [
      history.v1.History.encode(await workflow.getHandle(workflowId).fetchHistory()),
      describedAs.encode(await workflowService.describeWorkflowExecution(request)),
    ];
    const atServer = Buffer.concat(parts.map((part) => part.finish())).toString('latin1');
    for (const secret of ['sesquipedalian-prompt', prLink])
      for (const text of [secret, Buffer.from(secret).toString('base64')])
        expect(atServer).not.toContain(text);
    expect(atServer).toContain('binary/encrypted');
    expect(atServer).toContain('encryption-key-id');
    expect(worker.stdout + worker.stderr).not.toMatch(/sesquipedalian-prompt|\/pull\//);
  });
});

const RUN = `
const { loadPlugins } = require(${JSON.stringify(path.join(ROOT, 'dist/temporal/plugins.js'))});
loadPlugins(process.env).then(
  (plugins) => console.log(plugins.map(({ name }) => name).join()),
  (error) => console.log(error.message),
);`;

/** Loads modules in a separate process, because Jest replaces Node's module loader. */
const load = (plugins: string) =>
  mustRun(process.execPath, ['-e', RUN], { cwd: folder, env: { FOLLOW_UP_PLUGINS: plugins } });

const PLUGIN = "{ name: 'one', configureClient: (options) => options }";

it.each([
  ['a CommonJS module', 'one.cjs', `module.exports = ${PLUGIN};`],
  ['a compiled ES module', 'one.js', `exports.__esModule = true; exports.default = ${PLUGIN};`],
  ['a function', 'one.js', `module.exports = () => (${PLUGIN});`],
  [
    'an asynchronous function of an ES module with a top-level await',
    'one.mjs',
    `await 0; export default async () => (${PLUGIN});`,
  ],
])('loads the plugin of %s', async (_, file, code) => {
  await writeFile(at(file), code);
  expect(await load(`./${file}`)).toBe('one\n');
  expect(await load(file)).toBe('one\n');
});

it.each([
  [
    'exports only an ES module',
    { type: 'module', exports: { '.': { import: './index.js' } } },
    'export default',
  ],
  ['is a CommonJS package', { main: 'index.js' }, 'module.exports ='],
])('loads the plugin of a package of the working directory that %s', async (_, manifest, start) => {
  await mkdir(at('node_modules/@team/plugin'), { recursive: true });
  await writeFile(at('node_modules/@team/plugin/package.json'), JSON.stringify(manifest));
  await writeFile(at('node_modules/@team/plugin/index.js'), `${start} ${PLUGIN};`);
  expect(await load('@team/plugin')).toBe('one\n');
});

it.each([
  ['./none.js', '', /^\.\/none\.js: .*none\.js is not a file; set the path of a JavaScript module$/],
  ['no-package', '', /^no-package is neither a file nor an installed package; .* install the package in \//],
  [
    'throws.js',
    "throw new TypeError('bad', { cause: new Error('no file') })",
    /^throws\.js can't be loaded: TypeError: bad, because of: Error: no file \(\/.*throws\.js:1:7\); correct/,
  ],
  [
    'converter.mjs',
    'export const dataConverter = {};',
    /^converter\.mjs: the default export is nothing; export a Temporal plugin .* SimplePlugin/,
  ],
  [
    'object.js',
    'exports.payloadCodecs = [];',
    /^object\.js: the default export is an object with the properties payloadCodecs; export/,
  ],
  [
    'result.js',
    'module.exports = () => 1;',
    /^result\.js: the result of the function that is the default export is of type number; export/,
  ],
])('reports why %s is not a plugin', async (module, code, problem) => {
  if (code !== '') await writeFile(at(module), code);
  const [message = '', ...others] = (await load(module))
    .replace('Invalid configuration: FOLLOW_UP_PLUGINS: ', '')
    .split('\n');
  expect(message).toMatch(problem);
  expect(others).toEqual(['']);
});

it.each([
  [
    'configureNativeConnection',
    "() => { throw new Error('expired license'); }",
    'failed: Error: expired license (',
  ],
  [
    'configureWorker',
    "async () => { throw new Error('expired license'); }",
    'failed: Error: expired license (',
  ],
  ['configureWorker', '() => undefined', 'failed: it returned nothing instead of the options; correct or'],
  [
    'configureWorker',
    "(options) => ({ ...options, workflowBundle: { code: '' } })",
    'a plugin has replaced the workflows',
  ],
  [
    'configureWorker',
    "(options) => ({ ...options, interceptors: { workflowModules: ['./none.js'] } })",
    "Can't resolve './none.js'",
  ],
  ['runWorker', "async () => { throw new Error('expired license'); }", 'failed: Error: expired license ('],
])('the worker exits with code 2 if %s of a plugin is %s', async (method, code, problem) => {
  await writeFile(at('broken.mjs'), `export default { name: 'broken', ${method}: ${code} };`);
  await ProcessEnvironment.with({ env: { FOLLOW_UP_PLUGINS: at('broken.mjs') } }, async (environment) => {
    const worker = await environment.spawnWorker();
    expect(await worker.exited).toEqual({ code: 2, signal: null });
    expect(worker.stderr).toContain('The worker cannot start: its configuration has 1 problem');
    expect(worker.stderr).toContain('FOLLOW_UP_PLUGINS: ');
    expect(worker.stderr).toContain(problem);
  });
});

/** Prints the modules that the process loads for plugins. */
const PRELOADED = `
const Module = require('node:module');
const { _load } = Module;
Module._load = (request, ...others) => {
  if (/opentelemetry|temporalio.plugin/.test(request)) process.stderr.write(request + '\\n');
  return _load(request, ...others);
};`;

it('without FOLLOW_UP_PLUGINS, the worker uses the prebuilt bundle and loads no plugin', async () => {
  await writeFile(at('preloaded.cjs'), PRELOADED);
  const NODE_OPTIONS = `--require=${at('preloaded.cjs')}`;
  await ProcessEnvironment.with({ env: { NODE_OPTIONS } }, async (environment) => {
    const worker = await environment.startWorker();
    expect(worker.log().map(({ msg }) => msg)).not.toContain('bundled the workflows');
    expect(worker.stderr).toBe('');
  });
});
