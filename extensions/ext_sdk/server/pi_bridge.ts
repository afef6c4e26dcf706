// Bridge between the Pi coding agent and a child that serves the Pi extension protocol, a message on each line.
// `command` in package.json, next to this file, starts the child. Written by `export --protocol pi`.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import * as sdk from "@mariozechner/pi-coding-agent";

const TOOLS = {
  read: sdk.createReadTool, bash: sdk.createBashTool, edit: sdk.createEditTool, write: sdk.createWriteTool,
  grep: sdk.createGrepTool, find: sdk.createFindTool, ls: sdk.createLsTool,
};

export default async function (pi: sdk.ExtensionAPI) {
  const [program, ...words] = JSON.parse(readFileSync(new URL("package.json", import.meta.url), "utf8")).command;
  const child = spawn(program, words, { stdio: "pipe" });
  const open = new Map<string, any>(); // calls without a result, by call_id of a tool, or id of a slash command
  let [count, ended, errors, rest] = [0, "", "", ""];
  const send = (id: string, type: string, payload: object) =>
    child.stdin.write(JSON.stringify({ id, version: "1.0", type, payload }) + "\n");
  const call = (id: string, type: string, payload: object, ctx: sdk.ExtensionContext, report: any, signal?: AbortSignal) =>
    new Promise<any>((resolve, reject) => {
      if (ended) throw new Error(`${ended}; start it again with /reload`);
      open.set(id, { ctx, report, signal, resolve, reject });
      signal?.addEventListener("abort", () => send(`cancel-${id}`, "event_hook", { event: "tool_call_cancel", data: { call_id: id } }));
      send(id, type, payload);
    });
  const host: Record<string, (params: any, ctx: sdk.ExtensionContext, signal?: AbortSignal) => any> = {
    tool: ({ name, input }, ctx, signal) => {
      if (!Object.hasOwn(TOOLS, name)) throw new Error(`unknown tool: ${name}; expected one of ${Object.keys(TOOLS).join(", ")}`);
      return TOOLS[name as "read"](ctx.cwd).execute(`host-tool-${++count}`, input, signal);
    },
    exec: ({ cmd, args }, ctx, signal) => pi.exec(cmd, args ?? [], { cwd: ctx.cwd, signal }),
    env: ({ name }) => ({ value: process.env[name] ?? "", is_set: name in process.env }),
    ui: async ({ op, title, message, options, placeholder, type }, { ui, hasUI }) => {
      if (!hasUI) throw Object.assign(new Error("Pi runs without a user interface"), { code: "denied" });
      if (op === "notify") return ui.notify(message, type) ?? {};
      if (op === "confirm") return { value: await ui.confirm(title, message) };
      const value = op === "select" ? ui.select(title, options) : op === "input" ? ui.input(title, placeholder) : undefined;
      if (!value) throw new Error(`unknown op: ${op}; expected notify, confirm, select or input`);
      const chosen = await value;
      return chosen === undefined ? { cancelled: true } : { value: chosen };
    },
  };
  const answer = async ({ call_id, method, params, context }: any) => {
    let result: object;
    try {
      const of = open.get(context?.tool_call_id ?? context?.slash_command_id);
      if (!of) throw new Error("the call has its result already");
      if (!Object.hasOwn(host, method)) throw new Error(`unknown method: ${method}; expected one of ${Object.keys(host).join(", ")}`);
      result = { output: { ...(await host[method](params, of.ctx, of.signal)) }, is_error: false };
    } catch (error: any) {
      const code = error.code === "denied" ? "denied" : "io";
      result = { output: {}, is_error: true, error: { code, message: String(error.message || error) } };
    }
    send(`host_result:${call_id}`, "host_result", { call_id, ...result });
  };
  const exited = new Promise<void>((resolve) => {
    const end = (text: string) => {
      ended ||= `${program} ${text}${errors && `: ${errors.trim()}`}`;
      for (const { reject } of open.values()) reject(new Error(ended));
      open.clear();
      resolve();
    };
    child.on("error", (error) => end(`does not start: ${error.message}`));
    child.on("close", (code, signal) => end(`has ended (${signal ?? `exit code ${code}`})`));
  });
  child.stdin.on("error", () => {}); // it has ended, which "close" reports
  child.stderr.setEncoding("utf8").on("data", (text) => (errors = (errors + text).slice(-2000)));
  const registered = new Promise<any>((resolve) =>
    child.stdout.setEncoding("utf8").on("data", (text) => {
      const lines = (rest + text).split("\n"); // not readline, which ends lines at U+2028, too
      rest = lines.pop()!;
      for (const { id, type, payload } of lines.map((line) => JSON.parse(line))) {
        const key = type === "tool_result" ? payload.call_id : type === "log" ? payload.correlation.tool_call_id ?? payload.correlation.slash_command_id : id;
        const of = open.get(key);
        if (type === "register") resolve(payload);
        else if (type === "host_call") void answer(payload);
        else if (type === "log") of?.report(payload);
        else if (type === "error") of?.reject(new Error(payload.message));
        else if (of && payload.is_error) of.reject(new Error(payload.output.content[0].text));
        else of?.resolve(payload.output);
        if (type !== "log" && type !== "host_call") open.delete(key);
      }
    }),
  );
  const { tools, slash_commands } = (await Promise.race([registered, exited])) ?? (() => { throw new Error(ended); })();
  for (const tool of tools)
    pi.registerTool({
      ...tool,
      execute: (id: string, input: object, signal: AbortSignal | undefined, update: any, ctx: sdk.ExtensionContext) => {
        const report = (log: any) => log.level !== "debug" && update?.({ content: [{ type: "text", text: log.message }], details: {} });
        return call(id, "tool_call", { call_id: id, name: tool.name, input, context: { cwd: ctx.cwd } }, ctx, report, signal);
      },
    });
  for (const { name, description } of slash_commands)
    pi.registerCommand(name, {
      description,
      handler: async (args, ctx) => {
        const report = (log: any) => ["warn", "error"].includes(log.level) && ctx.ui.notify(log.message, log.level === "warn" ? "warning" : "error");
        const words = args.trim() ? [args.trim()] : [];
        const output = await call(`slash-${++count}`, "slash_command", { name, args: words, context: { cwd: ctx.cwd } }, ctx, report);
        ctx.ui.notify(output.content[0].text, "info");
      },
    });
  pi.on("session_shutdown", async () => {
    send("end", "event_hook", { event: "session_shutdown" });
    child.stdin.end();
    await exited;
  });
}
