# SPDX-License-Identifier: Apache-2.0
# Bash completion for cohort: commands, their options, files. The lists are those of `cohort COMMAND --help`.

_cohort() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} options
  local commands='inspect plot run bench convert'
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W "$commands help --help --version" -- "$word")
    return
  fi
  case $command in
    inspect) options='--params --shape --dtype --context --plan --json --help' ;;
    plot) options='--output --params --shape --dtype --weights --no-groups --json --help' ;;
    run) options='--params --input --shape --dtype --output --top --labels --batch --context --trace --json --help' ;;
    bench) options='--shape --dtype --params --batch --batch-axis --context --train --compute-dtype --tf32 --recompute --milliseconds --trace --json --help' ;;
    convert) options='--output --symbol --json --help' ;;
    help)
      mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$word")
      return
      ;;
    *) return ;;
  esac
  case $before in
    --context) mapfile -t COMPREPLY < <(compgen -W 'cpu\\(0\\) gpu\\(0\\)' -- "$word") ;;
    --compute-dtype) mapfile -t COMPREPLY < <(compgen -W 'float16 bfloat16' -- "$word") ;;
    --dtype | --shape | --top | --batch | --batch-axis | --milliseconds) ;;
    *)
      if [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
      else
        # File names, also in --input data=FILE.
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "${word##*=}")
      fi
      ;;
  esac
}
complete -F _cohort cohort
