package main

import (
	"context"
	"fmt"
	"os"
	"strings"
)

// scripts complete the words of a command line, by shell. COMMANDS stands for the names of
// all commands. The flags of a command are those that its help lists, when they are asked for.
var scripts = map[string]string{
	"bash": `_mcphybrid() {
	local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} flags
	if [ "$COMP_CWORD" = 1 ]; then
		COMPREPLY=($(compgen -W "COMMANDS" -- "$word"))
		return
	fi
	case $command in
	help) COMPREPLY=($(compgen -W "COMMANDS" -- "$word")) ;;
	completion) COMPREPLY=($(compgen -W "bash zsh fish" -- "$word")) ;;
	*)
		COMPREPLY=()
		if [[ $word == -* ]]; then
			flags=$("${COMP_WORDS[0]}" help "$command" 2>/dev/null </dev/null | sed -n 's/^  \(-[a-z-]*\).*/\1/p')
			COMPREPLY=($(compgen -W "$flags" -- "$word"))
		fi
		;;
	esac
}
complete -o default -F _mcphybrid mcphybrid
`,
	"zsh": `#compdef mcphybrid
_mcphybrid() {
	local command=$words[2]
	if (( CURRENT == 2 )) || { (( CURRENT == 3 )) && [[ $command == help ]]; }; then
		compadd -- COMMANDS
	elif [[ $command == completion ]]; then
		compadd -- bash zsh fish
	elif [[ $words[CURRENT] == -* ]]; then
		compadd -- ${(f)"$("$words[1]" help "$command" 2>/dev/null </dev/null | sed -n 's/^  \(-[a-z-]*\).*/\1/p')"}
	else
		_files
	fi
}
compdef _mcphybrid mcphybrid
`,
	"fish": `function __mcphybrid_flags
	set -l words (commandline -opc)
	test (count $words) -ge 2; and mcphybrid help $words[2] 2>/dev/null </dev/null | string replace -rf '^  (-[a-z-]*).*' '$1'
end
complete -c mcphybrid -n '__fish_is_first_arg' -f -a 'COMMANDS'
complete -c mcphybrid -n '__fish_seen_subcommand_from help' -f -a 'COMMANDS'
complete -c mcphybrid -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'
complete -c mcphybrid -n 'string match -q -- "-*" (commandline -ct)' -a '(__mcphybrid_flags)'
`,
}

// printCompletion prints the script of a shell.
func printCompletion(_ context.Context, args []string, _, out, errs *os.File) int {
	const usage = "completion: name one shell: bash, zsh or fish, as in  source <(mcphybrid completion bash)"
	if len(args) == 1 && isHelp(args[0]) {
		fmt.Fprintln(out, usage)
		return 0
	}
	if len(args) != 1 || scripts[args[0]] == "" {
		fmt.Fprintln(errs, usage)
		return 2
	}
	names := []string{"help"}
	for _, c := range commands() {
		names = append(names, c.name)
	}
	fmt.Fprint(out, strings.ReplaceAll(scripts[args[0]], "COMMANDS", strings.Join(names, " ")))
	return 0
}
