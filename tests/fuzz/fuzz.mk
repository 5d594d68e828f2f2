# make -f fuzz.mk SOURCE=DIR BUILD=DIR CLANG=NAME: the fuzzers, in the current folder.
fuzzers = fuzz_gguf fuzz_text fuzz_tokenizer

all: $(fuzzers)

sanitize = address,undefined
CPPFLAGS = -include $(BUILD)/build-aux/config.h -I$(BUILD) -I$(SOURCE) -I$(SOURCE)/include
CFLAGS = -std=c11 -O1 -g -ffp-contract=off -fno-sanitize-recover=all

# What knows nothing of plans.
above = %/llama_config.c %/llama_graph.c %/model.c
sources = $(filter-out $(above),$(wildcard $(SOURCE)/ir/*.c $(SOURCE)/models/*.c))
objects = $(notdir $(sources:.c=.o))

vpath %.c $(SOURCE)/ir $(SOURCE)/models $(SOURCE)/tests/fuzz

$(fuzzers): %: %.o fuzzed.a
	$(CLANG) -fsanitize=fuzzer,$(sanitize) -o $@ $^ -lcjson -lpcre2-8 -lm

fuzzed.a: $(objects)
	rm -f $@ && ar rcs $@ $^

%.o: %.c
	$(CLANG) $(CPPFLAGS) $(CFLAGS) -fsanitize=fuzzer-no-link,$(sanitize) -MMD -c -o $@ $<

-include $(wildcard *.d)
