/** `fencepost completion`: scripts for shells to complete commands, options and choices, generated from the program. */
import { Argument, type Command } from "commander";
import { answerWith } from "./answer.ts";
import type { Output } from "./terminal.ts";

export function addCompletion(program: Command, io: Output): void {
  const command = program
    .command("completion")
    .description("print a script that lets a shell complete commands and options")
    .addArgument(new Argument("<shell>", "which one").choices(Object.keys(SCRIPTS)));
  answerWith(command, io, {
    ask: async (_, shell) => ({ shell, script: SCRIPTS[shell as keyof typeof SCRIPTS](wordsOf(program)) }),
    show: ({ script }) => script,
  });
}

/**
 * What a shell can complete after a command such as `keys api`: its subcommands and options, and the choices of each
 * option.
 */
interface Place {
  /** Path of the command without the program's name; empty for the program itself. */
  readonly path: string;
  readonly commands: readonly Described[];
  readonly options: readonly (Described & { readonly choices: readonly string[]; readonly takesFile: boolean })[];
  /** Allowed values of the command's first argument. */
  readonly argumentChoices: readonly string[];
}

interface Described {
  readonly name: string;
  readonly description: string;
}

function wordsOf(program: Command): readonly Place[] {
  const everywhere = optionsOf(program);
  const visit = (command: Command, path: readonly string[]): readonly Place[] => [
    {
      path: path.join(" "),
      commands: command.commands.map((each) => ({ name: each.name(), description: each.description() })),
      options: [...(command === program ? [] : optionsOf(command)), ...everywhere, HELP],
      argumentChoices: command.registeredArguments[0]?.argChoices ?? [],
    },
    ...command.commands.flatMap((each) => visit(each, [...path, each.name()])),
  ];
  return visit(program, []);
}

const HELP = { name: "--help", description: "print the options", choices: [], takesFile: false };

function optionsOf(command: Command): Place["options"] {
  return command.options.flatMap(({ long: name, description, argChoices: choices = [], flags }) =>
    name ? [{ name, description, choices, takesFile: /<(file|path)>/.test(flags) }] : [],
  );
}

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;

/** Shell code that finds the deepest subcommand among the words before the cursor. */
const walkOver = (words: string, places: readonly Place[]) => `  local word place="" try
  for word in "\${${words}}"; do
    try="\${place:+$place }$word"
    case "$try" in
      ${pathsOf(places, '"').join(" | ")}) place="$try" ;;
    esac
  done`;

function bashScript(places: readonly Place[]) {
  const cases = places.map(({ path, commands, options, argumentChoices }) => {
    const words = [...commands.map(({ name }) => name), ...argumentChoices, ...options.map(({ name }) => name)];
    return `    "${path}") words="${words.join(" ")}" ;;`;
  });
  return `# bash completion of fencepost
_fencepost() {
  local current="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" words=""
${walkOver("COMP_WORDS[@]:1:COMP_CWORD-1", places)}
  case "$place $before" in
${choiceCases(places, (choices) => `words="${choices}"`)}
  esac
  if [ -z "$words" ]; then case "$place" in
${cases.join("\n")}
  esac; fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _fencepost fencepost
`;
}

/** Paths of all commands below the program, quoted for the shell. */
function pathsOf(places: readonly Place[], quote: string): readonly string[] {
  return places.flatMap(({ path }) => (path === "" ? [] : [`${quote}${path}${quote}`]));
}

function choiceCases(places: readonly Place[], offer: (choices: string) => string) {
  const found = places.flatMap(({ path, options }) =>
    options
      .filter(({ choices }) => choices.length > 0)
      .map(({ name, choices }) => `    "${path} ${name}") ${offer(choices.join(" "))} ;;`),
  );
  return found.join("\n");
}

function zshScript(places: readonly Place[]) {
  const described = ({ name, description }: Described) => quoted(`${name}:${description.replaceAll(":", "\\:")}`);
  const cases = places.map(({ path, commands, options, argumentChoices }) => {
    const words = [...commands, ...argumentChoices.map((name) => ({ name, description: "" })), ...options];
    return `    ${quoted(path)}) offers=(${words.map(described).join(" ")}) ;;`;
  });
  return `#compdef fencepost
_fencepost() {
  local -a offers
${walkOver("(@)words[2,CURRENT-1]", places)}
  case "$place \${words[CURRENT-1]}" in
${choiceCases(places, (choices) => `offers=(${choices})`)}
  esac
  if (( \${#offers} == 0 )); then case "$place" in
${cases.join("\n")}
  esac; fi
  _describe fencepost offers || _files
}
if [ "$funcstack[1]" = "_fencepost" ]; then _fencepost "$@"; else compdef _fencepost fencepost; fi
`;
}

function fishScript(places: readonly Place[]) {
  const lines = places.flatMap(({ path, commands, options, argumentChoices }) => {
    const when = `-n "__fencepost_at '${path}'"`;
    const offer = ({ name, description }: Described) =>
      `complete -c fencepost ${when} -f -a ${name} -d ${quoted(description)}`;
    return [
      ...commands.map(offer),
      ...argumentChoices.map((name) => offer({ name, description: "" })),
      ...options.map(({ name, description, choices, takesFile }) => {
        const takes = choices.length > 0 ? ` -x -a "${choices.join(" ")}"` : takesFile ? " -r -F" : "";
        return `complete -c fencepost ${when} -l ${name.slice(2)}${takes} -d ${quoted(description)}`;
      }),
    ];
  });
  return `# fish completion of fencepost
function __fencepost_at
  set -l place ""
  for word in (commandline -opc)[2..-1]
    set -l try (string trim "$place $word")
    contains -- "$try" ${pathsOf(places, "'").join(" ")}; and set place "$try"
  end
  test "$place" = "$argv[1]"
end
${lines.join("\n")}
`;
}

/** Quotes a text for a shell. */
function quoted(text: string) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
