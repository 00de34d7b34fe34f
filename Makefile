.PHONY: run test lint docs bench fuzz rule
run:
	@echo hi
