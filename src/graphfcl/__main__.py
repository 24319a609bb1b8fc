from graphfcl.cli import main

main()
